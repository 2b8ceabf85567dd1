"""`Pooler`: BERT's own vector for a whole sequence."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers.initializers import truncated_normal


@register
class Pooler(keras.layers.Layer):
    """A dense layer with tanh on the first token, BERT's own vector for a whole sequence.

    `tanh(x[0] W + b)`

    Args:
        initializer_range: standard deviation of fresh weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(batch, sequence, hidden_dim)`; or `(batch, hidden_dim)`, the first tokens already picked.

    Returns:
        Float `(batch, hidden_dim)`.

    Raises:
        ValueError: if `initializer_range` is not above 0, or `hidden` has neither 2 nor 3 axes.

    Examples:
        >>> tuple(Pooler()(keras.ops.ones((2, 5, 8))).shape)
        (2, 8)

    References:
        `BertModel` in google-research/bert, modeling.py, scope "pooler".
    """

    def __init__(self, *, initializer_range: float = 0.02, **kwargs: Any):
        super().__init__(**kwargs)
        self.initializer_range = checks.positive_number(type(self).__name__, "initializer_range", initializer_range)

    def build(self, input_shape: Any) -> None:
        """Makes the dense layer, as wide as the input."""
        if len(input_shape) not in (2, 3):
            rule = "be (batch, sequence, hidden_dim) or (batch, hidden_dim)"
            raise ValueError(checks.message(type(self).__name__, "hidden.shape", rule, tuple(input_shape)))
        self.dense = keras.layers.Dense(
            input_shape[-1],
            activation="tanh",
            kernel_initializer=truncated_normal(self.initializer_range),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.dense.build((input_shape[0], input_shape[-1]))

    def call(self, hidden: Any) -> Any:
        """Pools; see the class."""
        return self.dense(hidden if len(hidden.shape) == 2 else hidden[:, 0, :])

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The input's, without the axis of the sequence."""
        return (input_shape[0], input_shape[-1])

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "initializer_range": self.initializer_range}
