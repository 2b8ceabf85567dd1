"""`ScalarMix`: ELMo's weighted sum of the layers of an encoder, with learnt weights."""

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Shape, Tensor


@register
class ScalarMix(keras.layers.Layer):
    """Adds up the hidden states of several layers with learnt weights, as ELMo does.

    `gamma * sum_j softmax(w)_j h_j`. The weights `w` start at 0 and `gamma` at 1, so that a new layer gives the mean.
    The constructor takes `name`, `dtype` and `trainable`, as every layer does.

    Call arguments:
        hidden_states: float `(..., layers, hidden_dim)`, such as what `tasks.Features(..., combine="stack")` returns.

    Returns:
        Float `(..., hidden_dim)`. The weights are float32 under every dtype policy, and so is the softmax.

    Raises:
        ValueError: the input has fewer than two axes, or another number of layers than before.

    Examples:
        >>> states = keras.ops.convert_to_tensor([[[1.0, 4.0], [3.0, 8.0]]])  # one token, two layers
        >>> ScalarMix()(states).numpy().tolist()
        [[2.0, 6.0]]

    References:
        Peters et al. 2018, Deep contextualized word representations, https://arxiv.org/abs/1802.05365, equation 1.
    """

    def build(self, input_shape: Shape) -> None:
        """Creates the weights of the layers and the scale."""
        if len(input_shape) < 2 or None in input_shape[-2:]:
            rule = "have the shape (..., layers, hidden_dim), with the last two sizes known"
            raise ValueError(checks.message(type(self).__name__, "hidden_states", rule, checks.Shown(str(input_shape))))
        num_layers = input_shape[-2]
        options = {"dtype": "float32", "autocast": False}
        self.layer_weights = self.add_weight(shape=(num_layers,), initializer="zeros", name="layer_weights", **options)
        self.gamma = self.add_weight(shape=(), initializer="ones", name="gamma", **options)
        self.input_spec = keras.layers.InputSpec(min_ndim=2, axes={-2: num_layers})

    def call(self, hidden_states: Tensor) -> Any:
        """Weighs and adds up; see the class."""
        shares = self.gamma * ops.softmax(self.layer_weights)  # [L]
        return ops.sum(hidden_states * ops.cast(shares, hidden_states.dtype)[:, None], axis=-2)

    def compute_output_shape(self, input_shape: Shape) -> tuple[int | None, ...]:
        """The shape of the input without the axis of the layers."""
        return (*input_shape[:-2], input_shape[-1])
