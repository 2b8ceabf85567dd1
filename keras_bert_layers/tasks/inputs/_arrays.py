"""Columns as tensors, and outputs as arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.inputs._columns import is_ragged


def as_tensor(values: Any) -> Any:
    """A column as a tensor; None and ragged tensors unchanged."""
    return values if values is None or is_ragged(values) else tf.convert_to_tensor(values)


def rows_of(columns: Any, rows: tf.Tensor) -> Any:
    """The chosen rows of each column, in graph; None stays None."""
    return tf.nest.map_structure(lambda column: None if column is None else tf.gather(column, rows), columns)


def on_host(function: Callable[[Any], Any], texts: Any) -> Any:
    """`function(texts)` on the CPU; on an accelerator, integers between string ops would travel there and back."""
    with tf.device("CPU:0"):
        return function(texts)


def stacked(parts: Sequence[np.ndarray], fill: float | bytes) -> np.ndarray:
    """Arrays concatenated along their first axis, with `fill` where one is narrower than another on any axis."""
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) == 1:
        return np.concatenate(parts) if len(parts) > 1 else parts[0]
    shape = np.max(list(shapes), axis=0)
    found = np.full((sum(map(len, parts)), *shape), fill, parts[0].dtype)
    start = 0
    for part in parts:
        found[(slice(start, start + len(part)), *map(slice, part.shape[1:]))] = part
        start += len(part)
    return found
