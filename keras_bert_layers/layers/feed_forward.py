"""`FeedForward`: the two dense layers of an encoder block."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers.activations import activation_function
from keras_bert_layers.layers.initializers import truncated_normal


@register
class FeedForward(keras.layers.Layer):
    """Two dense layers with an activation between them, on each token alone.

    `activation(x W1 + b1) W2 + b2`

    Args:
        intermediate_dim: width between the two layers.
        activation: name of the function, one of `config.ACTIVATIONS`.
        initializer_range: standard deviation of fresh weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(..., hidden_dim)`.

    Returns:
        Float `(..., hidden_dim)`.

    Raises:
        ValueError: if an argument is out of its range.

    Examples:
        >>> tuple(FeedForward(intermediate_dim=12, activation="relu")(keras.ops.ones((2, 5, 4))).shape)
        (2, 5, 4)

    References:
        Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.3.
    """

    def __init__(
        self,
        intermediate_dim: int,
        *,
        activation: str = "gelu_erf",
        initializer_range: float = 0.02,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.intermediate_dim = checks.positive_integer(owner, "intermediate_dim", intermediate_dim)
        self.activation = activation
        self._activate = activation_function(owner, activation)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)

    def build(self, input_shape: Any) -> None:
        """Makes the two layers; the second is as wide as the input."""
        self.intermediate = self._dense(self.intermediate_dim, "intermediate")
        self.output_projection = self._dense(input_shape[-1], "output")
        self.intermediate.build(input_shape)
        self.output_projection.build((*input_shape[:-1], self.intermediate_dim))

    def _dense(self, width: int, name: str) -> keras.layers.Dense:
        kernel_initializer = truncated_normal(self.initializer_range)
        return keras.layers.Dense(width, kernel_initializer=kernel_initializer, dtype=self.dtype_policy, name=name)

    def call(self, hidden: Any) -> Any:
        """Transforms each token; see the class."""
        return self.output_projection(self._activate(self.intermediate(hidden)))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """That of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": self.activation,
            "initializer_range": self.initializer_range,
        }
