"""`Perplexity`: how many tokens a language model wavers between."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.metrics._positions import read_positions


@register
class Perplexity(keras.metrics.Metric):
    """`exp` of the mean cross entropy of the positions that count, over all batches.

    Args:
        name: the metric's name.
        dtype: of the sums, and of the softmax whatever the dtype of the logits.

    Call arguments:
        y_true: int `(batch, sequence)`, token ids, -100 at positions that do not count; any other shape does too.
        y_pred: float `(batch, sequence, vocabulary)`, logits.
        sample_weight: `(batch, sequence)` or `(batch,)`, how much each position counts.

    The result is NaN where nothing counts, and once an id that counts was none of the vocabulary.

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
        self.cross_entropy = self.add_variable((), "zeros", name="cross_entropy")
        self.total = self.add_variable((), "zeros", name="total")

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
        # Padding may hold anything, infinities too.
        self.cross_entropy.assign_add(ops.sum(ops.where(weight == 0, 0.0, weight * cross_entropy)))
        self.total.assign_add(ops.sum(weight))

    def result(self) -> Any:
        """The perplexity of all batches, a scalar."""
        return ops.exp(self.cross_entropy.value / self.total.value)
