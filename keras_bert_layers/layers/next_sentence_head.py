"""`NextSentenceHead`: logits for next-sentence prediction."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._dense import DenseLayer, dense


@register
class NextSentenceHead(DenseLayer):
    """The next-sentence prediction head: two logits for a pair of texts, 0 = the second follows, 1 = it does not.

    `x W + b` on the pooled output, computed in float32 under every dtype policy, for an exact loss.

    Args:
        initializer_range: standard deviation of the initial weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        pooled: float `(..., hidden_dim)`.

    Returns:
        Logits, float32 `(..., 2)`.

    Raises:
        ValueError: if `initializer_range` is not above 0.

    Examples:
        >>> tuple(NextSentenceHead()(keras.ops.ones((3, 8))).shape)
        (3, 2)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3.1; `get_next_sentence_output` in
        google-research/bert, run_pretraining.py, which defines 0 and 1.
    """

    def build(self, input_shape: Any) -> None:
        """Creates the dense layer."""
        self.dense = dense(2, self.initializer_range, dtype="float32")
        self.dense.build(input_shape)

    def call(self, pooled: Any) -> Any:
        """Computes logits; see the class."""
        return self.dense(pooled)

    def compute_output_spec(self, pooled: Any) -> Any:
        """Shape and dtype of the logits."""
        return keras.KerasTensor((*pooled.shape[:-1], 2), dtype="float32")
