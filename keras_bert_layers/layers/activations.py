"""The activation functions that a config may name, each under one name only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from keras_bert_layers.config import check_activation


def gelu_erf(inputs: Any) -> Any:
    """GELU as defined: `x * Phi(x) = x / 2 * (1 + erf(x / sqrt(2)))`.

    Args:
        inputs: floats of any shape.

    Returns:
        A tensor of the shape and dtype of `inputs`.

    References:
        Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415, section 2.
    """
    return keras.ops.gelu(inputs, approximate=False)


def gelu_tanh(inputs: Any) -> Any:
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


def activation_function(owner: str, name: str) -> Callable[[Any], Any]:
    """The function of an activation name.

    Args:
        owner: the class that asks, for the error.
        name: one of `config.ACTIVATIONS`.

    Returns:
        The function.

    Raises:
        ValueError: if there is no such activation, or `name` is "gelu", which has two forms.
    """
    gelus = {"gelu_erf": gelu_erf, "gelu_tanh": gelu_tanh}
    return gelus.get(check_activation(owner, name)) or keras.activations.get(name)
