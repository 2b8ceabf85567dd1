"""The real tokens of a batch, one behind the other, so that dense layers do no work on padding.

Axes: B batch, S sequence, T real tokens, H any width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.layers._row_groups import RowGroups, all_rows, rows_by_length


class Packing(NamedTuple):
    """Which places of a padded batch hold real tokens, on TensorFlow.

    Tokens are picked by `tf.gather`: `keras.ops.take` counts negative places from the end, in steps behind which
    TensorFlow no longer knows two tensors to have as many rows, and adds residuals apart from the products.

    The first place of every row counts as real, so that a row of padding only has a token too.

    Args:
        places: int `[T]`, the real places of the flattened batch, in order.
        sources: int `[B * S]`, for every place the real token that stands there; for padding, the last one before it.
        padding_mask: the mask `[B, S]`.
        rows_by_length: the rows in groups of about one length, for attention.
    """

    places: Any
    sources: Any
    padding_mask: Any
    rows_by_length: RowGroups

    def pack(self, padded: Any) -> Any:
        """The real tokens `[T, ...]` of `[B, S, ...]`."""
        return tf.gather(ops.reshape(padded, (-1, *padded.shape[2:])), self.places)

    def unpack(self, tokens: Any) -> Any:
        """`[B, S, H]` of `[T, H]`; in the place of padding stands a real token of the same row."""
        return ops.reshape(tf.gather(tokens, self.sources), (*ops.shape(self.padding_mask), tokens.shape[-1]))

    def first(self, tokens: Any) -> Any:
        """The first token of every row, `[B, H]` of `[T, H]`."""
        batch, length = ops.shape(self.padding_mask)
        return tf.gather(tokens, tf.gather(self.sources, ops.arange(batch) * length))

    def all_rows(self) -> RowGroups:
        """The rows as one group, of the batch's length."""
        return all_rows(self.sources, self.places, self.padding_mask)

    def rows(self) -> Any:
        """The row of every real token, int `[T]`."""
        return self.places // ops.shape(self.padding_mask)[1]

    def of_columns(self, values: Any) -> Any:
        """What stands in `[S, H]` for the place of every real token in its row, `[T, H]`."""
        return tf.gather(values, self.places % ops.shape(self.padding_mask)[1])


class PaddingFreeLayer(keras.layers.Layer):
    """A layer that leaves padding out in TensorFlow's graphs, unless told not to."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.padding_free = True

    @property
    def padding_free(self) -> bool:
        """Whether padding is left out in TensorFlow's graphs; if not, Keras may choose XLA by itself."""
        return self._padding_free

    @padding_free.setter
    def padding_free(self, value: bool) -> None:
        self._padding_free = checks.boolean(type(self).__name__, "padding_free", value)
        if keras.backend.backend() == "tensorflow":
            self.supports_jit = not value  # XLA wants fixed shapes

    def _packs(self, padding_mask: Any) -> bool:
        return self.padding_free and can_pack(padding_mask)


def packing_of(padding_mask: Any) -> Packing:
    """The packing of a batch with this mask, int or bool `[B, S]`, 1 = real token."""
    is_first = ops.arange(ops.shape(padding_mask)[1]) == 0
    is_real = ops.logical_or(ops.cast(padding_mask, "bool"), is_first)  # [B, S]
    places = ops.nonzero(ops.reshape(is_real, (-1,)))[0]
    sources = ops.cumsum(ops.cast(ops.reshape(is_real, (-1,)), "int32")) - 1
    return Packing(places, sources, padding_mask, rows_by_length(is_real, sources, places, padding_mask))


def can_pack(padding_mask: Any) -> bool:
    """Whether a batch with this mask may have any number of real tokens: in TensorFlow's graphs.

    A call that computes at once gives numbers at padding too, those of every other implementation.
    """
    return padding_mask is not None and in_tensorflow_graph(padding_mask)


def in_tensorflow_graph(tensor: Any) -> bool:
    """Whether a tensor stands for what a TensorFlow graph will compute, and is not computed already."""
    return keras.backend.backend() == "tensorflow" and not hasattr(tensor, "numpy")


def unpacked(packing: Packing, tokens: Any) -> Any:
    """`[B, S, H]` of `[T, H]`, with a note of where it came from, as Keras notes masks.

    What follows takes the tokens, and then nothing in the graph needs the padded tensor.
    """
    padded = packing.unpack(tokens)
    padded._packed_tokens = (packing, tokens)
    return padded


def packed(padded: Any, padding_mask: Any) -> tuple[Packing, Any]:
    """The packing by a mask and the real tokens `[T, H]` of a padded tensor."""
    known = known_tokens(padded, padding_mask)
    if known is not None:
        return known
    packing = packing_of(padding_mask)
    return packing, packing.pack(padded)


def known_tokens(padded: Any, padding_mask: Any) -> tuple[Packing, Any] | None:
    """What a padded tensor was unpacked from, if it was, and by this mask."""
    packing, tokens = _noted(padded)
    return (packing, tokens) if packing is not None and packing.padding_mask is padding_mask else None


def _noted(padded: Any) -> tuple[Packing | None, Any]:
    """The packing and the tokens that `unpacked` noted on a tensor; where it noted none, None and the tensor itself."""
    return getattr(padded, "_packed_tokens", (None, padded))


def of_each_token(function: Callable[[Any], Any], hidden: Any) -> Any:
    """`function(hidden)` `[..., K]`, for a function of single tokens: the real ones alone, where they are known."""
    packing, tokens = _noted(hidden)
    return function(tokens) if packing is None else packing.unpack(function(tokens))


def first_tokens(hidden: Any) -> Any:
    """The first token of every row, `[B, H]` of `[B, S, H]`."""
    return first_of(*_noted(hidden))


def first_of(packing: Packing | None, tokens: Any) -> Any:
    """The first token of every row, `[B, H]` of `[T, H]`; without a packing, of `[B, S, H]`."""
    return tokens[:, 0] if packing is None else packing.first(tokens)


def at_places(hidden: Any, places: Any) -> Any:
    """The tokens `[..., H]` at some places of the flattened batch `[B * S, H]`, int `[...]`."""
    packing, tokens = _noted(hidden)
    if packing is None:
        return ops.take(ops.reshape(tokens, (-1, tokens.shape[-1])), places, axis=0)
    return tf.gather(tokens, tf.gather(packing.sources, places))


def add_alike(tokens: Any, others: Any) -> Any:
    """The sum of two tensors `[T, H]`, which TensorFlow puts into the product before it: nothing can be broadcast."""
    return tf.add_n([tokens, others])
