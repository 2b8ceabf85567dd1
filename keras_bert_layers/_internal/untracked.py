"""Attributes of layers and models that Keras must not track."""

from __future__ import annotations

from typing import Generic, TypeVar

Value = TypeVar("Value")


class Untracked(Generic[Value]):
    """Holds a value that Keras must not track as a part of the layer or model that owns it.

    Keras looks through the attributes of a layer or model for layers, variables, lists and dictionaries. It trains,
    saves and counts the layers and variables, and locks the lists and dictionaries once the owner is built. It does not
    look inside this class.

    Args:
        value: any object; read and replaced as `.value`.

    Examples:
        >>> import keras
        >>> model = keras.Sequential()
        >>> model.teacher = Untracked(keras.layers.Dense(2))
        >>> model.layers
        []
    """

    def __init__(self, value: Value):
        self.value = value
