"""Reads labels of a sequence, some of which are ignored."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_bert_layers._internal import checks

IGNORED = -100


def read_positions(
    owner: str, y_true: Any, sample_weight: Any, *, num_classes: int | None, dtype: str
) -> tuple[Any, Any]:
    """Converts labels and weights to tensors of the same shape.

    Args:
        owner: the metric to name in errors.
        y_true: int labels of any shape, -100 at ignored positions.
        sample_weight: their weights, of the same shape or of its first axes; or None.
        num_classes: the number of classes; None if it is not known.
        dtype: the dtype of the weights.

    Returns:
        Int32 labels, 0 where the weight is 0 or the label is not a class; and the weights, 0 at ignored positions, and
        NaN at other positions whose label is not a class.
    """
    y_true = ops.cast(y_true, "int32")
    weight = ops.ones_like(y_true, dtype=dtype)
    if sample_weight is not None:
        given = ops.cast(sample_weight, dtype)
        missing = len(y_true.shape) - len(given.shape)
        if missing < 0:
            rule = f"have the shape of `y_true`, {tuple(y_true.shape)}, or of its first axes"
            raise ValueError(checks.message(owner, "sample_weight", rule, tuple(given.shape)))
        weight = weight * ops.reshape(given, (*ops.shape(given), *[1] * missing))
    counts = (y_true != IGNORED) & (weight != 0)
    known = (y_true >= 0) & (y_true < (2**31 - 1 if num_classes is None else num_classes))
    weight = ops.where(counts, ops.where(known, weight, float("nan")), 0.0)
    return ops.where(counts & known, y_true, 0), weight
