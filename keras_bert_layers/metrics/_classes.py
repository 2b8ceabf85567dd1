"""Reads labels and predicted classes, for all metrics of classes."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks


def check_num_classes(owner: str, num_classes: Any) -> int:
    """`num_classes` as an int of at least 2."""
    num_classes = checks.positive_integer(owner, "num_classes", num_classes)
    if num_classes < 2:
        raise ValueError(checks.message(owner, "num_classes", "be at least 2", num_classes))
    return num_classes


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
    if not _is_column(y_true):
        raise ValueError(checks.message(owner, "y_true", "be labels (batch,) or (batch, 1)", tuple(y_true.shape)))
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
    y_true, y_pred = ops.reshape(y_true, (-1,)), ops.reshape(ops.cast(y_pred, "int32"), (-1,))
    known = (y_true >= 0) & (y_true < num_classes) & (y_pred >= 0) & (y_pred < num_classes)
    return ops.where(known, y_true, 0), ops.where(known, y_pred, 0), known


def row_weights(owner: str, rows: Any, sample_weight: Any, dtype: str) -> Any:
    """One weight for each row of `rows`, `(batch,)`; ones if `sample_weight` is None."""
    if sample_weight is None:
        return ops.ones_like(rows, dtype=dtype)
    weight = ops.cast(sample_weight, dtype)
    if not _is_column(weight):
        rule = "be (batch,) or (batch, 1)"
        raise ValueError(checks.message(owner, "sample_weight", rule, tuple(weight.shape)))
    return ops.reshape(weight, (-1,))


def _is_column(values: Any) -> bool:
    return len(values.shape) == 1 or (len(values.shape) == 2 and values.shape[-1] in (None, 1))
