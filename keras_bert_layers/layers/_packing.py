"""The real tokens of a batch, one behind the other, so that dense layers do no work on padding.

Axes: B batch, S sequence, T real tokens, H any width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
from keras import ops


class Packing(NamedTuple):
    """Which places of a padded batch hold real tokens.

    The first place of every row counts as real, so that a row of padding only has a token too.

    Args:
        places: int `[T]`, the real places of the flattened batch, in order.
        sources: int `[B * S]`, for every place the real token that stands there; for padding, the last one before it.
        padding_mask: the mask `[B, S]`.
    """

    places: Any
    sources: Any
    padding_mask: Any

    def pack(self, padded: Any) -> Any:
        """The real tokens `[T, H]` of `[B, S, H]`."""
        return ops.take(ops.reshape(padded, (-1, padded.shape[-1])), self.places, axis=0)

    def unpack(self, tokens: Any) -> Any:
        """`[B, S, H]` of `[T, H]`; in the place of padding stands a real token of the same row."""
        rows = ops.take(tokens, self.sources, axis=0)
        return ops.reshape(rows, (*ops.shape(self.padding_mask), tokens.shape[-1]))

    def first(self, tokens: Any) -> Any:
        """The first token of every row, `[B, H]` of `[T, H]`."""
        batch, length = ops.shape(self.padding_mask)
        return ops.take(tokens, ops.take(self.sources, ops.arange(batch) * length), axis=0)


def packing_of(padding_mask: Any) -> Packing:
    """The packing of a batch with this mask, int or bool `[B, S]`, 1 = real token."""
    is_first = ops.arange(ops.shape(padding_mask)[1]) == 0
    is_real = ops.reshape(ops.logical_or(ops.cast(padding_mask, "bool"), is_first), (-1,))  # [B * S]
    return Packing(
        places=ops.nonzero(is_real)[0],
        sources=ops.cumsum(ops.cast(is_real, "int32")) - 1,
        padding_mask=padding_mask,
    )


def can_pack(padding_mask: Any) -> bool:
    """Whether a batch with this mask may have any number of real tokens: in TensorFlow's graphs.

    A call that computes at once gives numbers at padding too, those of every other implementation.
    """
    is_graph = keras.backend.backend() == "tensorflow" and not hasattr(padding_mask, "numpy")
    return padding_mask is not None and is_graph


def remember_tokens(padded: Any, padding_mask: Any, tokens: Any) -> None:
    """Notes on a padded tensor the tokens that it was unpacked from, as Keras notes masks.

    The next block takes these, and then nothing in the graph needs the padded tensor.
    """
    padded._packed_tokens = (padding_mask, tokens)


def tokens_of(padded: Any, padding_mask: Any, packing: Packing) -> Any:
    """The real tokens `[T, H]` of a padded tensor: those that it was unpacked from, where they are known."""
    mask, tokens = getattr(padded, "_packed_tokens", (None, None))
    return tokens if mask is padding_mask else packing.pack(padded)
