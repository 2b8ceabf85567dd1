"""Dense layers with BERT's initial weights, and the base of layers that hold one."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.layers.initializers import truncated_normal


def dense(units: int, initializer_range: float, *, name: str = "dense", **kwargs: Any) -> keras.layers.Dense:
    """A new `keras.layers.Dense` whose kernel is drawn from a truncated normal distribution.

    Args:
        units: the width of the output.
        initializer_range: the standard deviation of the initial kernel.
        name: the layer's name.
        **kwargs: other arguments of `keras.layers.Dense`, such as `dtype`.

    Returns:
        The layer, not built yet.
    """
    return keras.layers.Dense(units, kernel_initializer=truncated_normal(initializer_range), name=name, **kwargs)


class DenseLayer(keras.layers.Layer):
    """A layer whose weights are those of one dense layer; a subclass makes it, and documents the argument."""

    def __init__(self, *, initializer_range: float = 0.02, **kwargs: Any):
        super().__init__(**kwargs)
        self.initializer_range = checks.positive_number(type(self).__name__, "initializer_range", initializer_range)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "initializer_range": self.initializer_range}
