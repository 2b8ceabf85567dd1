"""The metadata in a `bert_config.json`: our settings that Google's format does not have.

google-research/bert sets every key of that file as an attribute and reads those that it knows, so one more key changes
nothing there. The metadata belongs to the weights that it was written with: it is ignored once the directory has other
weights, for example after training with Google's code.

References:
    `BertConfig.from_dict` in google-research/bert, modeling.py. docs/decisions/0010-gelu-in-googles-files.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.files.metadata import KEY, Metadata

OPTIONS: dict[str, dict[str, Any]] = {
    "classifier": {
        "num_classes": int,
        "class_names": (list, type(None)),
        "problem_type": str,
        "threshold": (float, type(None)),
        "dropout": float,
        "pairs": (bool, type(None)),
    },
    "cross_encoder": {"dropout": float},
    "masked_lm": {"head_activation": (str, type(None)), "head_layer_norm_epsilon": (float, type(None))},
    "pretrainer": {},
    "question_answerer": {"max_answer_length": int, "n_best": int, "no_answer_threshold": (int, float, type(None))},
    "sentence_encoder": {"pooling": str, "normalize": bool},
}
"""Task -> its options that are kept, with the types of their values."""


def read_metadata(path: Path, values: Any) -> Metadata:
    """Reads the metadata of a `bert_config.json` from the value of its key."""
    return Metadata.from_dict(f"{path}: `{KEY}`", values, OPTIONS, has_weights=True)
