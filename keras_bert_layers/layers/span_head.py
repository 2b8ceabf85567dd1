"""`SpanHead`: start and end logits for extractive question answering (SQuAD)."""

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Shape, Tensor
from keras_bert_layers.layers.dense import DenseLayer, dense
from keras_bert_layers.layers.padding_free import of_each_token

# Far below any logit; the sum of two of them, a start and an end, is finite.
MASKED_LOGIT = -1e9


@register
class SpanHead(DenseLayer):
    """The head of extractive question answering: a dense layer that gives each token a start and an end logit.

    `x W + b`, computed in float32 under every dtype policy, for exact probabilities and losses. There is no dropout, as
    in BERT's own model for SQuAD.

    Args:
        initializer_range: standard deviation of the initial weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(..., hidden_dim)`.
        answer_mask: int or bool `(...)`, 1 = a token at which an answer may start or end; None if all may. The others
            get a logit of -1e9, so that their probability is 0.

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

    def build(self, input_shape: Shape) -> None:
        """Creates the dense layer."""
        self.dense = dense(2, self.initializer_range, dtype="float32")
        self.dense.build(input_shape)

    def call(self, hidden: Tensor, answer_mask: Tensor | None = None) -> tuple[Any, Any]:
        """Computes both logits; see the class."""
        logits = of_each_token(self.dense, hidden)  # [..., 2]
        start_logits, end_logits = logits[..., 0], logits[..., 1]
        if answer_mask is None:
            return start_logits, end_logits
        may_be = ops.cast(answer_mask, "bool")
        return ops.where(may_be, start_logits, MASKED_LOGIT), ops.where(may_be, end_logits, MASKED_LOGIT)

    def compute_output_spec(self, hidden: Tensor, answer_mask: Tensor | None = None) -> tuple[Any, Any]:
        """Shape and dtype of both logits."""
        shape = hidden.shape[:-1]
        return keras.KerasTensor(shape, dtype="float32"), keras.KerasTensor(shape, dtype="float32")
