"""`GoogleNotes`: what Google's own files have no words for, kept in `bert_config.json`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.notes import KEY, checked_config
from keras_bert_layers.config import BertConfig

# What each part may say, and of which type.
_PARTS = {"weights": int, "config": dict, "tokenizer": dict, "max_length": int, "task": str, "options": dict}
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
"""Task -> its options that are noted, with the types of their values."""


@dataclasses.dataclass(frozen=True)
class GoogleNotes:
    """What Google's own files have no words for, kept under a key of its own in `bert_config.json`.

    google-research/bert sets every key of that file as an attribute and reads those that it knows, so that one more
    changes nothing there. The notes speak of the weights that they were written with: once other weights lie beside
    the config, as after training with Google's code, they no longer hold.

    Args:
        weights: the checksum of those weights' index, which holds the checksum of each of them.
        config: the encoder's config, with its form of GELU and its epsilon.
        tokenizer: the tokenizer's arguments, without the vocabulary.
        max_length: the longest text in tokens.
        task: the task's name, a `task` of `load_task`; None for a bare encoder.
        options: what else the task was made with.

    References:
        `BertConfig.from_dict` in google-research/bert, modeling.py. docs/decisions/0010-gelu-in-googles-files.md.
    """

    weights: int
    config: BertConfig
    tokenizer: dict[str, Any] | None = None
    max_length: int | None = None
    task: str | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def from_dict(cls, path: Path, values: Any) -> GoogleNotes:
        """The notes that `to_dict` wrote.

        Args:
            path: the file, for errors.
            values: what stands under the key.

        Raises:
            CheckpointError: this is not what this package writes.
        """
        where = f"{path}: `{KEY}`"
        config = checked_config(where, values, _PARTS, OPTIONS)
        if "weights" not in values:
            raise CheckpointError(f"{where} must hold `weights` and `config`. Received: {sorted(values)}.")
        return cls(**{**values, "config": config})

    @property
    def says_more_than_the_files(self) -> bool:
        """Whether a reader without the notes would not find the task, its options or the longest text."""
        has_options = any(value is not None for value in self.options.values())
        is_shorter = self.max_length not in (None, self.config.max_sequence_length)
        return has_options or is_shorter

    def to_dict(self) -> dict[str, Any]:
        """What `from_dict` reads, as plain values."""
        parts = {**dataclasses.asdict(self), "config": self.config.to_dict()}
        return {name: value for name, value in parts.items() if value is not None and value != {}}
