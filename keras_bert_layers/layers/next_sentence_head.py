"""`NextSentenceHead`: whether one text follows another."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers.initializers import truncated_normal


@register
class NextSentenceHead(keras.layers.Layer):
    """Two logits for a pair of texts: 0, the second follows the first; 1, it comes from somewhere else.

    `x W + b` on the pooled output, computed in float32 under every dtype policy, as the loss follows.

    Args:
        initializer_range: standard deviation of fresh weights.
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
        google-research/bert, run_pretraining.py, which says what 0 and 1 mean.
    """

    def __init__(self, *, initializer_range: float = 0.02, **kwargs: Any):
        super().__init__(**kwargs)
        self.initializer_range = checks.positive_number(type(self).__name__, "initializer_range", initializer_range)

    def build(self, input_shape: Any) -> None:
        """Makes the dense layer."""
        self.dense = keras.layers.Dense(
            2, kernel_initializer=truncated_normal(self.initializer_range), dtype="float32", name="dense"
        )
        self.dense.build(input_shape)

    def call(self, pooled: Any) -> Any:
        """Gives logits; see the class."""
        return self.dense(pooled)

    def compute_output_spec(self, pooled: Any) -> Any:
        """Shape and dtype of the logits."""
        return keras.KerasTensor((*pooled.shape[:-1], 2), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "initializer_range": self.initializer_range}
