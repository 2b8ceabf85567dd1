"""Trains small classifiers on one device of TensorFlow, and on two under `MirroredStrategy`.

    python mirrored_trainings.py

The last line of the output is JSON: optimizer -> the largest difference of a weight.
"""

import gc
import json
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import keras_bert_layers as kbl

gc.disable()  # tracing makes millions of objects that live as long as their graph
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

TOKENIZER = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film", "night"])
TEXTS = ["a good film", "bad", "night", "a bad night film", "good good", "film", "a", "bad a film"] * 8
LABELS = [1, 0, 1, 0, 1, 1, 0, 0] * 8
OPTIMIZERS = {
    "AdamW": lambda: kbl.optimizers.adamw(1e-2, clip_norm=0.1),
    "LAMB": lambda: kbl.optimizers.lamb(1e-2, clip_norm=0.1),
    "Keras's Adam": lambda: keras.optimizers.Adam(1e-2),
}


def trained(strategy: Any, name: str) -> list[np.ndarray]:
    keras.utils.set_random_seed(3)
    with strategy.scope():
        config = kbl.BertConfig(
            vocabulary_size=10,
            hidden_dim=16,
            num_layers=1,
            num_heads=2,
            intermediate_dim=16,
            dropout=0.0,
            attention_dropout=0.0,
            initializer_range=0.3,
        )
        task = kbl.BertClassifier(kbl.BertBackbone(config), 2, preprocessor=kbl.BertPreprocessor(TOKENIZER))
        optimizer = OPTIMIZERS[name]()
        optimizer.epsilon = 1e-2  # a smaller one turns the rounding of a gradient near zero into a full step
        # Eight steps are less work than a trace, and one of two devices shows that both compile.
        task.compile(optimizer, run_eagerly=(strategy, name) != (mirrored, "AdamW"))
    task.fit(TEXTS, LABELS, batch_size=8, epochs=1, shuffle=False, verbose=0)
    return task.get_weights()


def difference(name: str) -> float:
    one, two = trained(tf.distribute.get_strategy(), name), trained(mirrored, name)
    return max(float(np.abs(ours - theirs).max()) for ours, theirs in zip(one, two, strict=True))


print(json.dumps({name: difference(name) for name in OPTIMIZERS}))
