"""`Metadata`: settings of a model that another dialect's format does not have, kept in that dialect's files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.config import BertConfig

KEY = "keras_bert_layers"
"""The key of the metadata."""

_PROMPTS = {"prompts": (dict, type(None)), "default_prompt": (str, type(None))}
OPTIONS: dict[str, dict[str, Any]] = {
    "classifier": {
        "num_classes": int,
        "class_names": (list, type(None)),
        "problem_type": str,
        "threshold": (float, list, type(None)),
        "dropout": float,
        "pairs": (bool, type(None)),
    },
    "cross_encoder": {"dropout": float, "activation": str, **_PROMPTS},
    "masked_lm": {"head_activation": (str, type(None)), "head_layer_norm_epsilon": (float, type(None))},
    "pretrainer": {},
    "question_answerer": {"max_answer_length": int, "n_best": int, "no_answer_threshold": (int, float, type(None))},
    "sentence_encoder": {
        "pooling": (str, list),
        "normalize": bool,
        "truncate_dim": (int, type(None)),
        **_PROMPTS,
    },
}
"""Task -> its options that are kept, with the types of their values."""

_PARTS = {"config": dict, "tokenizer": dict, "task": str, "options": dict}
# Google's files have these too.
_WEIGHTS_PARTS = {"weights": int, "max_length": int}
_TOKENIZER = {
    "lowercase": bool,
    "strip_accents": (bool, type(None)),
    "split_chinese": bool,
    "num_pair_separators": int,
    "reference": str,
}


@dataclasses.dataclass(frozen=True)
class Metadata:
    """Settings of a model that another dialect's format does not have.

    They are kept under a key of their own, which the dialect's own code does not read.

    Args:
        config: the encoder's config, with its form of GELU and its epsilon.
        tokenizer: the tokenizer's arguments, without the vocabulary.
        task: the task's name, a `task` of `load_task`; None for a bare encoder.
        options: the task's other arguments.
        weights: a checksum of the weights that the metadata belongs to; None where the dialect's own code removes the
            metadata when it writes other weights.
        max_length: the maximum length of texts in tokens.
    """

    config: BertConfig
    tokenizer: dict[str, Any] | None = None
    task: str | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    weights: int | None = None
    max_length: int | None = None

    @classmethod
    def from_dict(cls, path: Path, values: Any, *, has_weights: bool = False) -> Metadata:
        """Reads what `to_dict` returned.

        Args:
            path: the file, for errors.
            values: the value of `KEY` in it.
            has_weights: whether `weights` must be there, and `max_length` may be.

        Raises:
            CheckpointError: this package did not write it.
        """
        where = f"{path}: `{KEY}`"
        _check(where, values, {**_PARTS, **_WEIGHTS_PARTS} if has_weights else _PARTS)
        required = ["weights", "config"] if has_weights else ["config"]
        if not all(key in values for key in required):
            raise CheckpointError(f"{where} must have the keys {required}. Received: {sorted(values)}.")
        task, task_options = values.get("task"), values.get("options", {})
        if task is not None and task not in OPTIONS:
            raise CheckpointError(f"{where}: `task` must be one of {sorted(OPTIONS)}. Received: {task!r}.")
        _check(f"{where}: `options`", task_options, OPTIONS.get(task or "", {}))
        if not all(isinstance(name, str) for name in task_options.get("class_names") or ()):
            raise CheckpointError(f"{where}: `class_names` must be strings. Received: {task_options['class_names']!r}.")
        if not all(isinstance(text, str) for text in (task_options.get("prompts") or {}).values()):
            raise CheckpointError(f"{where}: `prompts` must be strings. Received: {task_options['prompts']!r}.")
        _check(f"{where}: `tokenizer`", values.get("tokenizer", {}), _TOKENIZER)
        with naming(where):
            return cls(**{**values, "config": BertConfig.from_dict(values["config"])})

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for `from_dict`."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value not in (None, {})}

    @property
    def has_task_settings(self) -> bool:
        """Whether the task's options or the maximum length are in no other file."""
        has_options = any(value is not None for value in self.options.values())
        return has_options or self.max_length not in (None, self.config.max_sequence_length)

    def agrees(self, stated: BertConfig, config_there: Callable[[BertConfig], BertConfig]) -> bool:
        """Whether the config, written with the dialect's own keys, is the one that the dialect's file states."""
        try:
            return config_there(self.config) == stated
        except ValueError:
            return False


def _check(where: str, values: object, types: Mapping[str, Any]) -> None:
    """Raises CheckpointError for an unknown key or a value of another type."""
    if not isinstance(values, dict):
        raise CheckpointError(f"{where} must be a JSON object. Received: {values!r}.")
    for key, value in values.items():
        if key not in types or not isinstance(value, types[key]):
            raise CheckpointError(f"{where}: `{key}` must be a known key with its type of value. Received: {value!r}.")
