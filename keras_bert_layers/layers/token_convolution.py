"""`TokenConvolution`: DeBERTa-v2's convolution over neighbouring tokens, beside the first block of an encoder."""

from __future__ import annotations

from typing import Any, Unpack

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Tensor
from keras_bert_layers.layers._dropout import Dropout
from keras_bert_layers.layers.dense import activation_function
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.layers.layer_norm import LayerNorm
from keras_bert_layers.layers.padding_free import RealTokens, first_of
from keras_bert_layers.layers.products import product


@register
class TokenConvolution(keras.layers.Layer):
    """A convolution of what a block reads, added to what it returns, with a LayerNorm after the sum.

    `LayerNorm(output + activation(dropout(convolution(hidden))))`, with zeros for padding, for other texts and for what
    is beyond the ends of a row.

    Args:
        kernel_size: how many tokens each sum reads, with its own in the middle; odd.
        activation: name of the function, one of `config.ACTIVATIONS`.
        dropout: dropout rate of the convolution, in [0, 1).
        layer_norm_epsilon: added to the variance in LayerNorm.
        initializer_range: standard deviation of the initial kernel.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(batch, sequence, hidden_dim)`, what the block reads; with `real_tokens`, `(tokens, hidden_dim)`.
        output: float, what the block returns: of the shape of `hidden`, or `(batch, hidden_dim)` with
            `first_token_only`.
        padding_mask, real_tokens, packed_rows, first_token_only: as in `SelfAttention`.

    Returns:
        Float, of the shape of `output`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> hidden = ops.ones((2, 5, 8))
        >>> tuple(TokenConvolution(3)(hidden, hidden).shape)
        (2, 5, 8)

    References:
        `ConvLayer` in transformers, models/deberta_v2/modeling_deberta_v2.py.
    """

    def __init__(
        self,
        kernel_size: int,
        *,
        activation: str = "tanh",
        dropout: float = 0.0,
        layer_norm_epsilon: float = 1e-7,
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.kernel_size = checks.positive_integer(owner, "kernel_size", kernel_size)
        if kernel_size % 2 == 0:
            raise ValueError(checks.message(owner, "kernel_size", "be odd", kernel_size))
        self.activation = activation
        self.activate = activation_function(owner, activation)
        self.dropout = checks.fraction(owner, "dropout", dropout)
        self.layer_norm_epsilon = checks.positive_number(owner, "layer_norm_epsilon", layer_norm_epsilon)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)

    def build(self, input_shape: Any) -> None:
        """Creates the kernel `[kernel_size, H, H]`, the bias and LayerNorm."""
        width, options = input_shape[-1], {"dtype": self.dtype_policy}
        initializer = truncated_normal(self.initializer_range)
        self.kernel = self.add_weight(name="kernel", shape=(self.kernel_size, width, width), initializer=initializer)
        self.bias = self.add_weight(name="bias", shape=(width,), initializer="zeros")
        self.dropout_layer = Dropout(self.dropout, name="dropout", **options)
        self.layer_norm = LayerNorm(epsilon=self.layer_norm_epsilon, name="layer_norm", **options)
        self.layer_norm.build(input_shape)

    def call(
        self,
        hidden: Tensor,
        output: Tensor,
        padding_mask: Any = None,
        *,
        real_tokens: RealTokens | None = None,
        packed_rows: bool = False,
        first_token_only: bool = False,
    ) -> Any:
        """Adds the convolution; see the class."""
        padded = hidden if real_tokens is None else real_tokens.pad(hidden)
        mask = ops.ones(ops.shape(padded)[:2], "int32") if padding_mask is None else padding_mask
        near = self._near(padded, ops.cast(mask, "int32" if packed_rows else "bool"))
        near = near if real_tokens is None else real_tokens.select(near)
        near = first_of(real_tokens, near) if first_token_only else near
        kernel = ops.convert_to_tensor(self.kernel)
        products = product(near, ops.reshape(kernel, (-1, kernel.shape[-1])), self.bias)
        return self.layer_norm(output + self.activate(self.dropout_layer(products)))

    def _near(self, padded: Tensor, texts: Tensor) -> Any:
        """What each token's sum reads, `[B, S, kernel_size * H]`: the tokens around it, of its own text only."""
        reach, length = self.kernel_size // 2, ops.shape(padded)[1]
        wide = ops.pad(padded, ((0, 0), (reach, reach), (0, 0)))
        others = ops.pad(ops.cast(texts, "int32"), ((0, 0), (reach, reach)))
        texts, zero = others[:, reach : reach + length], ops.cast(0, padded.dtype)
        parts = []
        for first in range(self.kernel_size):
            is_own = others[:, first : first + length] == texts
            parts.append(ops.where(is_own[..., None], wide[:, first : first + length], zero))
        return ops.concatenate(parts, axis=-1)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **constructor_arguments(TokenConvolution, self)}
