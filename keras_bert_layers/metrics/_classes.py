"""Reads labels and predicted classes, for all metrics of classes."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks


def read_classes(owner: str, num_classes: int, y_true: Any, y_pred: Any) -> tuple[Any, Any, Any]:
    """Converts labels, and logits or predicted labels, to one class a row.

    Args:
        owner: the metric to name in errors.
        num_classes: the number of classes.
        y_true: int `(batch,)` or `(batch, 1)`.
        y_pred: float `(batch, num_classes)`, logits, or int `(batch,)` or `(batch, 1)`, labels.

    Returns:
        Both int32 `(batch,)`, 0 for values that are not classes; and bool `(batch,)`, whether both are classes.
    """
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    y_true = read_column(owner, "y_true", y_true, "be labels (batch,) or (batch, 1)")
    is_float = keras.backend.is_float_dtype(y_pred.dtype)
    if is_float and len(y_pred.shape) == 2 and y_pred.shape[-1] in (None, num_classes):
        y_pred = ops.argmax(y_pred, axis=-1)
    elif is_float or not _is_column(y_pred):
        rule = f"be logits (batch, {num_classes}) or integer labels (batch,)"
        received = (tuple(y_pred.shape), keras.backend.standardize_dtype(y_pred.dtype))
        raise ValueError(checks.message(owner, "y_pred", rule, received))
    # -1 for fractions, which a cast would turn into labels.
    whole = ops.cast(y_true, "int32")
    y_true = ops.where(ops.cast(whole, y_true.dtype) == y_true, whole, -1)
    y_pred = ops.reshape(ops.cast(y_pred, "int32"), (-1,))
    known = (y_true >= 0) & (y_true < num_classes) & (y_pred >= 0) & (y_pred < num_classes)
    return ops.where(known, y_true, 0), ops.where(known, y_pred, 0), known


def row_weights(owner: str, rows: Any, sample_weight: Any, dtype: str) -> Any:
    """One weight for each row of `rows`, `(batch,)`; ones if `sample_weight` is None."""
    if sample_weight is None:
        return ops.ones_like(rows, dtype=dtype)
    return read_column(owner, "sample_weight", ops.cast(sample_weight, dtype), "be (batch,) or (batch, 1)")


def read_column(owner: str, argument: str, values: Any, rule: str) -> Any:
    """Values `(batch,)` or `(batch, 1)` as `(batch,)`; ValueError with the rule otherwise."""
    if not _is_column(values):
        raise ValueError(checks.message(owner, argument, rule, tuple(values.shape)))
    return ops.reshape(values, (-1,))


def _is_column(values: Any) -> bool:
    return len(values.shape) == 1 or (len(values.shape) == 2 and values.shape[-1] in (None, 1))
