"""Freezes and frees an encoder between steps; the last line of the output is JSON: what each step has changed.

KERAS_BACKEND=... python frozen_steps.py
"""

import json

import numpy as np

import keras_bert_layers as kbl

SIZES = {"hidden_dim": 15, "num_layers": 1, "num_heads": 3, "intermediate_dim": 21, "max_sequence_length": 13}
IDS = {name: np.ones((2, 3), "int32") for name in ("token_ids", "segment_ids", "padding_mask")}

if __name__ == "__main__":
    task, changed = kbl.BertClassifier(kbl.BertBackbone(kbl.BertConfig(vocabulary_size=9, **SIZES)), 2), []
    for frozen in (False, True, False):
        task.backbone.trainable = not frozen
        before = [np.array(weight) for weight in task.weights]  # copies, as JAX gives the arrays away
        task.fit(IDS, np.array([0, 1]), verbose=0)
        pairs = zip(task.weights, before, strict=True)
        changed.append(
            sorted({weight.path.split("/")[0] for weight, old in pairs if (np.asarray(weight) != old).any()})
        )
    print(json.dumps({"changed": changed, "steps": int(task.optimizer.iterations)}))
