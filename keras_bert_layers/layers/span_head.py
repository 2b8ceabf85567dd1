"""`SpanHead`: how well each token starts and ends an answer."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._packing import of_each_token
from keras_bert_layers.layers.initializers import truncated_normal

# Far below any logit, and yet so near that two of them, a start and an end, have a finite sum.
MASKED_LOGIT = -1e9


@register
class SpanHead(keras.layers.Layer):
    """A dense layer with two outputs: how well each token starts an answer, and how well it ends one.

    `x W + b`, computed in float32 under every dtype policy, as probabilities and losses follow. There is no dropout, as
    in BERT's own model for SQuAD.

    Args:
        initializer_range: standard deviation of fresh weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(..., hidden_dim)`.
        answer_mask: int or bool `(...)`, 1 = a token at which an answer may start or end; None where all may. The
            others get a logit of -1e9, which no softmax notices.

    Returns:
        A tuple: start logits and end logits, float32 `(...)` each.

    Raises:
        ValueError: if `initializer_range` is not above 0.

    Examples:
        >>> start_logits, end_logits = SpanHead()(keras.ops.ones((2, 5, 8)))
        >>> tuple(start_logits.shape), tuple(end_logits.shape)
        ((2, 5), (2, 5))

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 4.2; `create_model` in google-research/bert,
        run_squad.py.
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

    def call(self, hidden: Any, answer_mask: Any = None) -> tuple[Any, Any]:
        """Gives both logits; see the class."""
        logits = of_each_token(self.dense, hidden)  # [..., 2]
        start_logits, end_logits = logits[..., 0], logits[..., 1]
        if answer_mask is None:
            return start_logits, end_logits
        may_be = ops.cast(answer_mask, "bool")
        return ops.where(may_be, start_logits, MASKED_LOGIT), ops.where(may_be, end_logits, MASKED_LOGIT)

    def compute_output_spec(self, hidden: Any, answer_mask: Any = None) -> tuple[Any, Any]:
        """Shape and dtype of both logits."""
        shape = hidden.shape[:-1]
        return keras.KerasTensor(shape, dtype="float32"), keras.KerasTensor(shape, dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "initializer_range": self.initializer_range}
