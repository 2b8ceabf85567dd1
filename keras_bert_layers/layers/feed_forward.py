"""Feed-forward networks of an encoder block: BERT's `FeedForward`, and `GatedFeedForward` (GEGLU, SwiGLU)."""

from typing import Any, Unpack

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Shape, Tensor
from keras_bert_layers.layers._dropout import Dropout
from keras_bert_layers.layers.dense import activation_function, dense, unfused


@register
class FeedForward(keras.layers.Layer):
    """The feed-forward network of a Transformer: two dense layers with an activation between them, for each token.

    `activation(x W1 + b1) W2 + b2`

    Args:
        intermediate_dim: width between the two layers.
        activation: name of the function, one of `config.ACTIVATIONS`.
        use_bias: whether there are biases, b1 and b2.
        initializer_range: standard deviation of the initial weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(..., hidden_dim)`.
        training: whether gradients follow, which changes only how GELU of half precision is rounded.

    Attributes:
        has_gate: whether the first product has twice the width, for a gate and what it multiplies.
        gate_has_bias: whether the first product has a bias, if there are any.

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

    has_gate = False
    gate_has_bias = True

    def __init__(
        self,
        intermediate_dim: int,
        *,
        activation: str = "gelu_erf",
        use_bias: bool = True,
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.intermediate_dim = checks.positive_integer(owner, "intermediate_dim", intermediate_dim)
        self.activation = activation
        self._activate = activation_function(owner, activation)
        self.use_bias = checks.boolean(owner, "use_bias", use_bias)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)

    def build(self, input_shape: Any) -> None:
        """Creates the two layers; the second is as wide as the input."""
        options: dict[str, Any] = {"initializer_range": self.initializer_range, "dtype": self.dtype_policy}
        width, has_bias = (1 + self.has_gate) * self.intermediate_dim, self.use_bias and self.gate_has_bias
        self.intermediate = dense(width, use_bias=has_bias, name="intermediate", **options)
        self.output_projection = dense(input_shape[-1], use_bias=self.use_bias, name="output", **options)
        self.intermediate.build(input_shape)
        self.output_projection.build((*input_shape[:-1], self.intermediate_dim))

    def call(self, hidden: Tensor, training: bool | None = None) -> Any:
        """Transforms each token; see the class."""
        inner = self.intermediate(hidden)
        # Outside of training, TensorFlow fuses the activation into the product.
        return self.output_projection(unfused(self._activate, inner) if training else self._activate(inner))

    def compute_output_shape(self, input_shape: Shape) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **constructor_arguments(FeedForward, self)}


@register
class GatedFeedForward(FeedForward):
    """A feed-forward network with a gate: GEGLU with a GELU as activation, SwiGLU with `"silu"`, ReGLU with `"relu"`.

    `(activation(x W + b) * (x V + c)) W2 + b2`, with one merged product for W and V. It has half as many weights more
    than a `FeedForward` of the same width; the paper takes two thirds of the width to make up for that.

    Args:
        intermediate_dim: width of the gate and of what it multiplies.
        activation: name of the gate's function, one of `config.ACTIVATIONS`.
        use_bias: whether there are biases.
        gate_has_bias: whether there are also b and c; if not, only b2.
        dropout: dropout rate of what the gate lets through, in [0, 1).
        initializer_range: standard deviation of the initial weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(..., hidden_dim)`.
        training: whether dropout is active.

    Returns:
        Float `(..., hidden_dim)`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> tuple(GatedFeedForward(intermediate_dim=12, activation="silu")(keras.ops.ones((2, 5, 4))).shape)
        (2, 5, 4)

    References:
        Shazeer 2020, GLU variants improve Transformer, https://arxiv.org/abs/2002.05202, section 2.
    """

    has_gate = True

    def __init__(
        self,
        intermediate_dim: int,
        *,
        activation: str = "gelu_erf",
        use_bias: bool = True,
        gate_has_bias: bool = True,
        dropout: float = 0.0,
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ):
        options: dict[str, Any] = {"activation": activation, "use_bias": use_bias, **kwargs}
        super().__init__(intermediate_dim, initializer_range=initializer_range, **options)
        owner = type(self).__name__
        self.gate_has_bias = checks.boolean(owner, "gate_has_bias", gate_has_bias)
        self.dropout = checks.fraction(owner, "dropout", dropout)

    def build(self, input_shape: Any) -> None:
        """Creates the two layers; the second is as wide as the input."""
        super().build(input_shape)
        self.dropout_layer = Dropout(self.dropout, dtype=self.dtype_policy, name="dropout")

    def call(self, hidden: Tensor, training: bool | None = None) -> Any:
        """Transforms each token; see the class."""
        gate, inner = ops.split(self.intermediate(hidden), 2, axis=-1)  # [..., I]
        passed = unfused(self._activate, gate) * inner
        return self.output_projection(self.dropout_layer(passed, training=training))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **constructor_arguments(GatedFeedForward, self)}
