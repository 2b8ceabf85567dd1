"""Notes of this package in other people's files: what their layouts have no words for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.config import BertConfig

KEY = "keras_bert_layers"
"""The key that the notes stand under."""

_TOKENIZER = {"lowercase": bool, "strip_accents": (bool, type(None)), "split_chinese": bool, "reference": str}


def checked_config(where: str, values: Any, parts: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]) -> Any:
    """Checks notes as a file holds them, and gives the config among them.

    Args:
        where: the file and the key, for errors.
        values: what stands under the key.
        parts: what the notes may say, and of which type; `task`, `options`, `tokenizer` and `config` among them.
        options: task -> the options that may be noted, and of which type.

    Returns:
        The `BertConfig`.

    Raises:
        CheckpointError: this is not what this package writes.
    """
    _check(where, values, parts)
    if "config" not in values:
        raise CheckpointError(f"{where} must hold a `config`. Received: {sorted(values)}.")
    task, noted = values.get("task"), values.get("options", {})
    if task is not None and task not in options:
        raise CheckpointError(f"{where}: `task` must be one of {sorted(options)}. Received: {task!r}.")
    _check(f"{where}: `options`", noted, options.get(task or "", {}))
    if not all(isinstance(name, str) for name in noted.get("class_names") or ()):
        raise CheckpointError(f"{where}: `class_names` must be strings. Received: {noted['class_names']!r}.")
    _check(f"{where}: `tokenizer`", values.get("tokenizer", {}), _TOKENIZER)
    try:
        return BertConfig.from_dict(values["config"])
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"{where}: {error}") from error


def tokenizer_notes(preprocessor: Any) -> dict[str, Any] | None:
    """What is noted of a preprocessor's tokenizer: its arguments, without the vocabulary; None of no preprocessor."""
    if preprocessor is None:
        return None
    return {name: value for name, value in preprocessor.tokenizer.get_config().items() if name != "vocabulary"}


def _check(where: str, values: Any, types: Mapping[str, Any]) -> None:
    """Only known keys, each of its type."""
    if not isinstance(values, dict):
        raise CheckpointError(f"{where} must be a JSON object. Received: {values!r}.")
    for key, value in values.items():
        if key not in types or not isinstance(value, types[key]):
            raise CheckpointError(f"{where}: `{key}` must be a known key with its kind of value. Received: {value!r}.")
