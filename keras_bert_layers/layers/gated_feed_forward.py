"""`GatedFeedForward`: a feed-forward network whose inner vector is multiplied by a gate."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._dense import dense
from keras_bert_layers.layers.feed_forward import FeedForward


@register
class GatedFeedForward(FeedForward):
    """A feed-forward network with a gate: GEGLU with a GELU as activation, SwiGLU with `"silu"`, ReGLU with `"relu"`.

    `(activation(x W + b) * (x V + c)) W2 + b2`, with one merged product for W and V. It has half as many weights more
    than a `FeedForward` of the same width; the paper takes two thirds of the width to make up for that.

    Args:
        intermediate_dim: width of the gate and of what it multiplies.
        activation: name of the gate's function, one of `config.ACTIVATIONS`.
        initializer_range: standard deviation of the initial weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(..., hidden_dim)`.

    Returns:
        Float `(..., hidden_dim)`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import keras
        >>> tuple(GatedFeedForward(intermediate_dim=12, activation="silu")(keras.ops.ones((2, 5, 4))).shape)
        (2, 5, 4)

    References:
        Shazeer 2020, GLU variants improve Transformer, https://arxiv.org/abs/2002.05202, section 2.
    """

    def _inner_layer(self, **options: Any) -> Any:
        return dense(2 * self.intermediate_dim, name="intermediate", **options)

    def call(self, hidden: Any) -> Any:
        """Transforms each token; see the class."""
        gate, inner = ops.split(self.intermediate(hidden), 2, axis=-1)  # [..., I]
        return self.output_projection(self._activate(gate) * inner)
