"""Dense layers with BERT's initial weights."""

from __future__ import annotations

from typing import Any

import keras

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
