"""`Perplexity`: the exponential of the mean cross entropy."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.metrics._positions import read_positions


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

    def __init__(self, name: str = "perplexity", *, dtype: Any = None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        y_true, logits = ops.convert_to_tensor(y_true), ops.cast(y_pred, self.dtype)
        if len(logits.shape) != len(y_true.shape) + 1:
            rule = f"be logits with one axis more than `y_true`, {tuple(y_true.shape)}"
            raise ValueError(checks.message("Perplexity", "y_pred", rule, tuple(logits.shape)))
        true, weight = read_positions(
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
