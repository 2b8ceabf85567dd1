"""`FlattenChoices`: every choice of every row as a row of its own."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal.registration import register


@register
class FlattenChoices(keras.layers.Layer):
    """Joins the axes of rows and choices, so that a backbone reads each choice as a row of its own.

    `(batch, choices, sequence)` becomes `(batch * choices, sequence)`, the choices of a row one after the other.
    `MultipleChoiceHead` brings the scores back into rows.

    Args:
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        ids: int `(batch, choices, sequence)`.

    Returns:
        The same numbers, `(batch * choices, sequence)`.

    Examples:
        >>> tuple(FlattenChoices()(keras.ops.ones((2, 4, 9), dtype="int32")).shape)
        (8, 9)
    """

    def call(self, ids: Any) -> Any:
        """Joins the first two axes; see the class."""
        return ops.reshape(ids, (-1, ops.shape(ids)[-1]))  # [B * choices, S]

    def compute_output_spec(self, ids: Any) -> Any:
        """Shape and dtype of the output."""
        return keras.KerasTensor((None, ids.shape[-1]), dtype=ids.dtype)
