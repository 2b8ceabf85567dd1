"""`FlattenChoices`: each choice as a row."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal.registration import register


@register
class FlattenChoices(keras.layers.Layer):
    """Merges the axes of rows and choices, so that a backbone reads each choice as a row.

    `(batch, choices, sequence)` becomes `(batch * choices, sequence)`, with the choices of a row one after the other.
    `MultipleChoiceHead` splits the scores into rows again.

    Call arguments:
        ids: int `(batch, choices, sequence)`.

    Returns:
        The same ids, `(batch * choices, sequence)`.

    Examples:
        >>> tuple(FlattenChoices()(keras.ops.ones((2, 4, 9), dtype="int32")).shape)
        (8, 9)
    """

    def call(self, ids: Any) -> Any:
        """Merges the first two axes; see the class."""
        return ops.reshape(ids, (-1, ops.shape(ids)[-1]))  # [B * choices, S]

    def compute_output_spec(self, ids: Any) -> Any:
        """Shape and dtype of the output."""
        return keras.KerasTensor((None, ids.shape[-1]), dtype=ids.dtype)
