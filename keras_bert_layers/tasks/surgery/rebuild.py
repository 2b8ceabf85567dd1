"""A model again with another config: its weights, of which some get other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np


def remade(model: Any, config: Any, changed: Iterable[Any], rows: Callable[[np.ndarray], np.ndarray]) -> Any:
    """A new model of the same class and the same weights in the same order, except for those that change.

    Args:
        model: a Keras model that `from_config` makes.
        config: the config of the new model.
        changed: weights of `model` that have other rows in the new one.
        rows: from the old to the new value of such a weight.

    Returns:
        The new model, compiled as a new one is.
    """
    new = type(model).from_config(config)
    ids = {id(weight) for weight in changed}
    for old, weight in zip(model.weights, new.weights, strict=True):
        value = keras.ops.convert_to_numpy(old)
        weight.assign(rows(value).astype(value.dtype) if id(old) in ids else value)
    return new
