"""A model again with more positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.tasks._remade import remade
from keras_bert_layers.tasks.task import Task


def with_positions(owner: str, model: Any, length: Any, rows: Callable[[np.ndarray], np.ndarray]) -> Any:
    """A model whose encoders read longer sequences.

    Args:
        owner: the public function that was called, for errors.
        model: a task or a `BertBackbone`.
        length: the new `max_sequence_length`.
        rows: from the vectors of the old positions, float64 `(old, width)`, to those of the new ones.

    Raises:
        TypeError: the model is neither.
        ValueError: an encoder has no trained positions, or `length` is not larger than what it has.
    """
    if not isinstance(model, Task | BertBackbone):
        raise TypeError(checks.message(owner, "model", "be a task or a BertBackbone", model))
    backbones = [layer for layer in model._flatten_layers() if isinstance(layer, BertBackbone)]
    for backbone in backbones:
        if backbone.parts.positions is not None:
            rule = "have a trained position embedding"
            raise ValueError(checks.message(owner, "model", rule, backbone.parts.positions))
    smallest = max(backbone.config.max_sequence_length for backbone in backbones) + 1
    checks.integer(owner, "max_sequence_length", length, smallest=smallest, reason=", more than the model has")
    (offset,) = {backbone.config.position_offset for backbone in backbones}

    def all_rows(old: np.ndarray) -> np.ndarray:
        return np.concatenate([old[:offset], rows(old[offset:].astype("float64"))])

    changed = [backbone.get_layer("embedding").position_embedding for backbone in backbones]
    return remade(model, _longer(model.get_config(), length), changed, all_rows)


def _longer(value: Any, length: int) -> Any:
    """A config with another length wherever there is an encoder."""
    if not isinstance(value, dict):
        return value
    return {key: length if key == "max_sequence_length" else _longer(item, length) for key, item in value.items()}
