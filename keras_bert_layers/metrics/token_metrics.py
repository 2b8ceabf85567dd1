"""Metrics of tokens, with ignored positions: masked accuracy and perplexity."""

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor

IGNORED = -100


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

    def __init__(self, name: str = "accuracy", *, dtype: str | keras.DTypePolicy | None = None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        is_logits, num_classes = len(y_pred.shape) == len(y_true.shape) + 1, None
        if is_logits:
            num_classes = y_pred.shape[-1]
            y_pred = ops.argmax(y_pred, axis=-1)
        elif len(y_pred.shape) != len(y_true.shape) or keras.backend.is_float_dtype(y_pred.dtype):
            rule = f"be logits with one axis more than `y_true`, {tuple(y_true.shape)}, or integer labels of its shape"
            raise ValueError(checks.message("MaskedAccuracy", "y_pred", rule, tuple(y_pred.shape)))
        true, weight = _read_positions(
            "MaskedAccuracy", y_true, sample_weight, num_classes=num_classes, dtype=self.dtype
        )
        is_right = true == ops.cast(y_pred, "int32")
        super().update_state(ops.reshape(is_right, (-1,)), ops.reshape(weight, (-1,)))  # flat: Keras averages rows


@register
class Perplexity(keras.metrics.Mean):
    """The exponential of the mean cross entropy over all positions that are not ignored, in all batches.

    Args:
        name: the metric's name.
        dtype: the dtype of the sums and the softmax, whatever the dtype of the logits.

    Call arguments:
        y_true: int `(batch, sequence)`, token ids, -100 at ignored positions; or any other shape.
        y_pred: float `(batch, sequence, vocabulary)`, logits.
        sample_weight: `(batch, sequence)` or `(batch,)`, the weight of each position.

    The result is NaN if all positions are ignored, and after an id that is not in the vocabulary.

    Raises:
        ValueError: shapes other than these.

    Examples:
        >>> metric = Perplexity()
        >>> metric.update_state([[2, -100]], [[[0.0, 0.0, 0.0, 0.0], [9.0, 0.0, 0.0, 0.0]]])
        >>> round(float(metric.result()), 5)
        4.0

    References:
        `keras_hub.metrics.Perplexity` with `from_logits=True`.
    """

    def __init__(self, name: str = "perplexity", *, dtype: str | keras.DTypePolicy | None = None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        y_true, logits = ops.convert_to_tensor(y_true), ops.cast(y_pred, self.dtype)
        if len(logits.shape) != len(y_true.shape) + 1:
            rule = f"be logits with one axis more than `y_true`, {tuple(y_true.shape)}"
            raise ValueError(checks.message("Perplexity", "y_pred", rule, tuple(logits.shape)))
        true, weight = _read_positions(
            "Perplexity", y_true, sample_weight, num_classes=logits.shape[-1], dtype=self.dtype
        )
        log_probabilities = ops.log_softmax(logits, axis=-1)
        cross_entropy = -ops.squeeze(ops.take_along_axis(log_probabilities, true[..., None], axis=-1), axis=-1)
        # Ignored positions may contain anything, infinities too.
        cross_entropy = ops.where(weight == 0, 0.0, cross_entropy)
        super().update_state(ops.reshape(cross_entropy, (-1,)), ops.reshape(weight, (-1,)))  # flat: Keras averages rows

    def result(self) -> Any:
        """The perplexity of all batches, a scalar."""
        return ops.exp(self.total.value / self.count.value)


def _read_positions(
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
