"""`FeedForward`: the feed-forward network of an encoder block."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.arguments import constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._dense import dense
from keras_bert_layers.layers.activations import activation_function


@register
class FeedForward(keras.layers.Layer):
    """The feed-forward network of a Transformer: two dense layers with an activation between them, for each token.

    `activation(x W1 + b1) W2 + b2`

    Args:
        intermediate_dim: width between the two layers.
        activation: name of the function, one of `config.ACTIVATIONS`.
        initializer_range: standard deviation of the initial weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(..., hidden_dim)`.

    Returns:
        Float `(..., hidden_dim)`.

    Raises:
        ValueError: if an argument is out of range.

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
        """Creates the two layers; the second is as wide as the input."""
        options = {"initializer_range": self.initializer_range, "dtype": self.dtype_policy}
        self.intermediate = self._inner_layer(**options)
        self.output_projection = dense(input_shape[-1], name="output", **options)
        self.intermediate.build(input_shape)
        self.output_projection.build((*input_shape[:-1], self.intermediate_dim))

    def _inner_layer(self, **options: Any) -> keras.layers.Dense:
        return dense(self.intermediate_dim, name="intermediate", **options)

    def call(self, hidden: Any) -> Any:
        """Transforms each token; see the class."""
        return self.output_projection(self._activate(self.intermediate(hidden)))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **constructor_arguments(FeedForward, self)}
