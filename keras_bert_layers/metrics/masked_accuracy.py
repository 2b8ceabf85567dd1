"""`MaskedAccuracy`: the share of the positions that count that are right."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.metrics._positions import read_positions


@register
class MaskedAccuracy(keras.metrics.Metric):
    """The share of positions predicted right, of those that count, over all batches.

    `keras.metrics.SparseCategoricalAccuracy` averages over a row first, so that a position counts less in a batch of
    longer rows; here each counts alike.

    Args:
        name: the metric's name.
        dtype: of the counts; float32 counts exactly up to 16,777,216.

    Call arguments:
        y_true: int `(batch, sequence)`, labels, -100 at positions that do not count; any other shape does too.
        y_pred: float `(batch, sequence, classes)`, logits, or int `(batch, sequence)`, labels.
        sample_weight: `(batch, sequence)` or `(batch,)`, how much each position counts.

    The result is 0 where nothing counts, and NaN once a label that counts was no class.

    Raises:
        ValueError: shapes other than these.

    Examples:
        >>> metric = MaskedAccuracy()
        >>> metric.update_state([[3, 1, -100]], [[3, 2, 5]])
        >>> float(metric.result())
        0.5
    """

    def __init__(self, name: str = "accuracy", *, dtype: Any = None):
        super().__init__(name=name, dtype=dtype)
        self.correct = self.add_variable((), "zeros", name="correct")
        self.total = self.add_variable((), "zeros", name="total")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        is_logits, num_classes = len(y_pred.shape) == len(y_true.shape) + 1, None
        if is_logits:
            num_classes = y_pred.shape[-1]
            y_pred = ops.argmax(y_pred, axis=-1)
        elif len(y_pred.shape) != len(y_true.shape) or keras.backend.is_float_dtype(y_pred.dtype):
            rule = f"be logits with one axis more than `y_true`, {tuple(y_true.shape)}, or integer labels of its shape"
            raise ValueError(checks.message("MaskedAccuracy", "y_pred", rule, tuple(y_pred.shape)))
        true, weight = read_positions(
            "MaskedAccuracy", y_true, sample_weight, num_classes=num_classes, dtype=self.dtype
        )
        right = ops.cast(true == ops.cast(y_pred, "int32"), self.dtype)
        self.correct.assign_add(ops.sum(weight * right))
        self.total.assign_add(ops.sum(weight))

    def result(self) -> Any:
        """The accuracy of all batches, a scalar."""
        return ops.divide_no_nan(self.correct.value, self.total.value)
