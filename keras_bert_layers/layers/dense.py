"""Dense layers with BERT's initial weights, the base of layers that hold one, and activations (GELU)."""

from collections.abc import Callable
from typing import Any, Unpack

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import LayerOptions, Tensor
from keras_bert_layers.config import check_activation
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.layers.products import product


def gelu_erf(inputs: Tensor) -> Any:
    """GELU as defined: `x * Phi(x) = x / 2 * (1 + erf(x / sqrt(2)))`.

    Args:
        inputs: floats of any shape.

    Returns:
        A tensor of the shape and dtype of `inputs`.

    References:
        Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415, section 2.
    """
    return keras.ops.gelu(inputs, approximate=False)


def gelu_tanh(inputs: Tensor) -> Any:
    """The tanh form of GELU: `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))`.

    Args:
        inputs: floats of any shape.

    Returns:
        A tensor of the shape and dtype of `inputs`.

    References:
        Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415, section 2; `gelu` in google-research/bert,
        modeling.py.
    """
    return keras.ops.gelu(inputs, approximate=True)


def quick_gelu(inputs: Tensor) -> Any:
    """The logistic form of GELU, as in CLIP: `x * sigmoid(1.702 * x)`, of floats of any shape."""
    return inputs * keras.ops.sigmoid(1.702 * inputs)


def gelu_10(inputs: Tensor) -> Any:
    """GELU between -10 and 10, for quantized models (https://arxiv.org/abs/2004.09602), of floats of any shape."""
    return keras.ops.clip(gelu_erf(inputs), -10, 10)


def leaky_relu(inputs: Tensor) -> Any:
    """`max(x, 0.01 * x)`, with torch's slope where Keras's own default is 0.2, of floats of any shape."""
    return keras.ops.leaky_relu(inputs, negative_slope=0.01)


_OWN = {function.__name__: function for function in (gelu_erf, gelu_tanh, quick_gelu, gelu_10, leaky_relu)}


def activation_function(owner: str, name: str) -> Callable[[Any], Any]:
    """The function of a name in `config.ACTIVATIONS`; ValueError for others, and for "gelu", which has two forms."""
    return _OWN.get(check_activation(owner, name)) or keras.activations.get(name)


def unfused(activation: Callable[[Any], Any], inputs: Tensor) -> Any:
    """An activation that TensorFlow does not fuse into the product before it, of floats of any shape, in their dtype.

    On a CPU, TensorFlow's `erfc` and `tanh` of half precision take several times as long as those of float32, so GELU
    is computed in float32: casts included, in a quarter of the time. SiLU is one operation in any dtype.
    """
    is_half = keras.backend.standardize_dtype(inputs.dtype) in ("bfloat16", "float16")
    is_slow = is_half and activation in (gelu_erf, gelu_tanh, gelu_10) and keras.backend.backend() == "tensorflow"
    if not is_slow or keras.distribution.list_devices("gpu"):
        return activation(inputs)
    return keras.ops.cast(activation(keras.ops.cast(inputs, "float32")), inputs.dtype)


class _Dense(keras.layers.Dense):
    """`keras.layers.Dense`, which on torch adds its bias in place, and multiplies by `product`."""

    def call(self, inputs: Tensor, training: bool | None = None) -> Any:
        """Transforms float `(..., width)`."""
        if keras.backend.backend() != "torch":
            return super().call(inputs, training=training)
        outputs = product(inputs, self.kernel, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def quantize(self, mode: str | None = None, type_check: bool = True, config: Any = None) -> None:
        """Quantizes the kernel, as `keras.layers.Dense`, which refuses subclasses, as their calls may be others."""
        super().quantize(mode, type_check=False, config=config)


def dense(units: int, initializer_range: float, *, name: str = "dense", **kwargs: Any) -> keras.layers.Dense:
    """A new `keras.layers.Dense` whose kernel has a truncated normal distribution.

    Args:
        units: the width of the output.
        initializer_range: the standard deviation of the initial kernel.
        name: the layer's name.
        **kwargs: other arguments of `keras.layers.Dense`, such as `dtype`.

    Returns:
        The layer, not built yet.
    """
    return _Dense(units, kernel_initializer=truncated_normal(initializer_range), name=name, **kwargs)


class DenseLayer(keras.layers.Layer):
    """A layer whose weights are those of one dense layer; a subclass makes it, and documents the argument."""

    def __init__(self, *, initializer_range: float = 0.02, **kwargs: Unpack[LayerOptions]):
        super().__init__(**kwargs)
        self.initializer_range = checks.positive_number(type(self).__name__, "initializer_range", initializer_range)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "initializer_range": self.initializer_range}
