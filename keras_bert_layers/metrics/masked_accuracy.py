"""`MaskedAccuracy`: the accuracy at positions that are not ignored."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.metrics._positions import read_positions


@register
class MaskedAccuracy(keras.metrics.Mean):
    """The accuracy over all positions that are not ignored, in all batches.

    `keras.metrics.SparseCategoricalAccuracy` averages each row first, so that a position in a longer row counts less;
    here all positions count equally.

    Args:
        name: the metric's name.
        dtype: the dtype of the counts; float32 counts exactly up to 16,777,216.

    Call arguments:
        y_true: int `(batch, sequence)`, labels, -100 at ignored positions; or any other shape.
        y_pred: float `(batch, sequence, classes)`, logits, or int `(batch, sequence)`, labels.
        sample_weight: `(batch, sequence)` or `(batch,)`, the weight of each position.

    The result is 0 if all positions are ignored, and NaN after a label that is not a class.

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
        is_right = true == ops.cast(y_pred, "int32")
        super().update_state(ops.reshape(is_right, (-1,)), ops.reshape(weight, (-1,)))  # flat: Keras averages rows
