"""`MultipleChoiceHead`: one score a choice."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers.initializers import truncated_normal

# A choice that is not there: finite, so that no gradient is NaN, and yet 0 after every softmax in float32.
ABSENT_SCORE = -1e9


@register
class MultipleChoiceHead(keras.layers.Layer):
    """Dropout and a dense layer with one output: from the vector of a prompt with a choice to the choice's score.

    `dropout(x) w + b`, computed in float32 under every dtype policy, as probabilities and losses follow. A softmax over
    the choices of a row makes probabilities of the scores. Rows may have different numbers of choices: the mask says
    which are there, and those that are not get a score of -1e9, which the softmax turns to 0.

    Args:
        dropout: rate on the input, in [0, 1).
        initializer_range: standard deviation of fresh weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        pooled: float `(..., hidden_dim)`, such as `(batch, choices, hidden_dim)`.
        choice_mask: int or bool, as many numbers as there are vectors, 1 = a choice that is there; None where all are.
            The scores take its shape: with a mask `(batch, choices)`, `pooled` may be `(batch * choices, hidden_dim)`.

    Returns:
        Scores, float32 `(...)`, or in the shape of the mask.

    Raises:
        ValueError: if an argument is out of its range.

    Examples:
        >>> tuple(MultipleChoiceHead()(keras.ops.ones((2, 4, 8))).shape)
        (2, 4)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 4.4 (SWAG).
    """

    def __init__(self, *, dropout: float = 0.1, initializer_range: float = 0.02, **kwargs: Any):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.dropout = checks.fraction(owner, "dropout", dropout)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)

    def build(self, input_shape: Any) -> None:
        """Makes the dense layer."""
        self.dropout_layer = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(
            1, kernel_initializer=truncated_normal(self.initializer_range), dtype="float32", name="dense"
        )
        self.dense.build(input_shape)

    def call(self, pooled: Any, choice_mask: Any = None) -> Any:
        """Gives scores; see the class."""
        scores = ops.squeeze(self.dense(self.dropout_layer(pooled)), axis=-1)
        if choice_mask is None:
            return scores
        return ops.where(ops.cast(choice_mask, "bool"), ops.reshape(scores, ops.shape(choice_mask)), ABSENT_SCORE)

    def compute_output_spec(self, pooled: Any, choice_mask: Any = None) -> Any:
        """Shape and dtype of the scores."""
        shape = pooled.shape[:-1] if choice_mask is None else choice_mask.shape
        return keras.KerasTensor(shape, dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "dropout": self.dropout, "initializer_range": self.initializer_range}
