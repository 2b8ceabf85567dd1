"""The dense layers after the pooling of a sentence encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.config import ACTIVATIONS, BertConfig
from keras_bert_layers.layers.activations import activation_function
from keras_bert_layers.layers.initializers import truncated_normal


def as_given(value: Any) -> Any:
    """A sequence as a tuple, and anything else as it is: Keras would watch the changes of a list."""
    return tuple(value) if isinstance(value, list) else value


def projection_layers(
    owner: str, widths: int | Sequence[int] | None, activations: str | Sequence[str], config: BertConfig
) -> list[keras.layers.Dense]:
    """Dense layers in a row, in float32 like the vectors; none without a width.

    Args:
        owner: the task's class, for errors.
        widths: of one layer, or of each.
        activations: of all layers, or of each.
        config: the backbone's.

    Raises:
        TypeError, ValueError: an argument out of range; not one activation for each layer.
    """
    given: Any = [] if widths is None else widths
    widths = list(given) if isinstance(given, list | tuple) else [given]
    names = [activations] * max(1, len(widths)) if isinstance(activations, str) else list(activations)
    for name in names:
        checks.one_of(owner, "projection_activation", name, ACTIVATIONS)
    if widths:
        rule = f"be one activation, or one for each of {len(widths)} layers"
        checks.length(owner, "projection_activation", names, len(widths), rule=rule, unit="activations")
    return [
        keras.layers.Dense(
            checks.positive_integer(owner, "projection_dim", width),
            activation=activation_function(owner, name),
            kernel_initializer=truncated_normal(config.initializer_range),
            dtype="float32",
            name=projection_name(index),
        )
        for index, (width, name) in enumerate(zip(widths, names, strict=False))
    ]


def projection_name(index: int) -> str:
    """The name of a dense layer after the pooling, counted from 0."""
    return f"dense_projection_{index}" if index else "dense_projection"
