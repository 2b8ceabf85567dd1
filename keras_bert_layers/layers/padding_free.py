"""Padding-free batches: the real tokens of a batch in one list, so that dense layers do no work on padding.

Axes: B batch, S sequence, T real tokens, H any width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf


class RowGroup(NamedTuple):
    """Some rows of a batch, cut after the last real token of the longest.

    Args:
        rows: int `[G]`, the indices of the rows in the batch.
        sources: int `[G, L]`, for every position the real token there; for padding, the last real token before it.
        padding_mask: the mask `[G, L]`.
    """

    rows: Any
    sources: Any
    padding_mask: Any

    def unpack(self, tokens: Any) -> Any:
        """`[G, L, H]` of the real tokens `[T, H]` of the batch."""
        return tf.gather(tokens, self.sources)

    def pick(self, values: Any) -> Any:
        """The rows of the group, `[G, H]` of `[B, H]`."""
        return tf.gather(values, self.rows)


class RowGroups(NamedTuple):
    """All rows of a batch, in groups, which may be empty.

    Args:
        groups: the groups; every row is in one.
        indices: int `[T]`, the index of each real token in the flattened and concatenated groups.
        ranks: int `[B]`, the index of each row in the concatenated groups.
    """

    groups: tuple[RowGroup, ...]
    indices: Any
    ranks: Any

    def pack(self, padded: Sequence[Any]) -> Any:
        """The real tokens `[T, H]` of one `[G, L, H]` a group."""
        width = padded[0].shape[-1]
        return tf.gather(_joined([tf.reshape(part, (-1, width)) for part in padded]), self.indices)

    def join(self, values: Sequence[Any]) -> Any:
        """`[B, H]`, in the order of the batch, of one `[G, H]` a group."""
        return tf.gather(_joined(values), self.ranks)


def all_rows(sources: Any, indices: Any, padding_mask: Any) -> RowGroups:
    """The rows as one group, of the length of the batch."""
    shape = tf.shape(padding_mask)
    every_row = tf.range(shape[0])
    return RowGroups((RowGroup(every_row, tf.reshape(sources, shape), padding_mask),), indices, every_row)


def rows_by_length(is_real: Any, sources: Any, indices: Any, padding_mask: Any) -> RowGroups:
    """Splits the rows into long and short ones, such that the two groups have the fewest attention scores.

    The order of the tokens does not change: layers that work on single tokens are independent of the groups.

    Args:
        is_real: bool `[B, S]`, whether a position has a token; at least one in every row.
        sources: int `[B * S]`, for every position the real token there.
        indices: int `[T]`, the indices of the real tokens in the flattened batch.
        padding_mask: int or bool `[B, S]`, 1 = token that others attend to.
    """
    batch, length = tf.unstack(tf.shape(padding_mask))
    lengths = tf.reduce_max(tf.where(is_real, tf.range(1, length + 1), 0), axis=1)  # [B]
    by_length = tf.argsort(lengths, direction="DESCENDING", stable=True)
    descending = tf.concat([tf.gather(lengths, by_length), [1]], axis=0)  # [B + 1], so that a batch may be empty
    num_long = _fewest_scores(tf.cast(descending, "float32"))
    long, short = descending[0], descending[num_long]
    ranks = tf.math.invert_permutation(by_length)
    # Computed elementwise from `indices`, so that TensorFlow knows that the number of tokens is the same.
    rank = tf.gather(ranks, indices // length)
    starts = tf.where(rank < num_long, rank * long, num_long * long + (rank - num_long) * short)
    sources = tf.reshape(sources, (batch, length))

    def group(rows: Any, longest: Any) -> RowGroup:
        return RowGroup(rows, tf.gather(sources, rows)[:, :longest], tf.gather(padding_mask, rows)[:, :longest])

    groups = (group(by_length[:num_long], long), group(by_length[num_long:], short))
    return RowGroups(groups, starts + indices % length, ranks)


def _fewest_scores(descending: Any) -> Any:
    """The number of rows in the long group, int; from descending lengths `[B + 1]`."""
    num_long = tf.range(tf.cast(tf.size(descending), "float32"))
    num_short = num_long[-1] - num_long
    num_scores = num_long * descending[0] ** 2 + num_short * descending**2
    return tf.argmin(num_scores, output_type="int32")


def _joined(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else tf.concat(parts, axis=0)


class Packing(NamedTuple):
    """The positions of the real tokens in a padded batch, on TensorFlow.

    `tf.gather` selects the tokens. `keras.ops.take` also supports negative indices, and after its extra operations
    TensorFlow no longer knows that two tensors have the same number of rows, so it does not fuse the residuals into the
    matrix products.

    The first position of every row counts as real, so that a row of only padding has a token too.

    Args:
        indices: int `[T]`, the indices of the real tokens in the flattened batch, in order.
        sources: int `[B * S]`, for every position the real token there; for padding, the last real token before it.
        padding_mask: the mask `[B, S]`.
        rows_by_length: the rows in groups of about one length, for attention.
    """

    indices: Any
    sources: Any
    padding_mask: Any
    rows_by_length: RowGroups

    def pack(self, padded: Any) -> Any:
        """The real tokens `[T, ...]` of `[B, S, ...]`."""
        return tf.gather(ops.reshape(padded, (-1, *padded.shape[2:])), self.indices)

    def unpack(self, tokens: Any) -> Any:
        """`[B, S, H]` of `[T, H]`; padding becomes a real token of the same row."""
        return ops.reshape(tf.gather(tokens, self.sources), (*ops.shape(self.padding_mask), tokens.shape[-1]))

    def first(self, tokens: Any) -> Any:
        """The first token of every row, `[B, H]` of `[T, H]`."""
        batch, length = ops.shape(self.padding_mask)
        return tf.gather(tokens, tf.gather(self.sources, ops.arange(batch) * length))

    def all_rows(self) -> RowGroups:
        """The rows as one group, of the batch's length."""
        return all_rows(self.sources, self.indices, self.padding_mask)

    def rows(self) -> Any:
        """The index of the row of every real token, int `[T]`."""
        return self.indices // ops.shape(self.padding_mask)[1]

    def at_positions(self, values: Any) -> Any:
        """`[T, H]`: for every real token, the row of `values` `[S, H]` at its position."""
        return tf.gather(values, self.indices % ops.shape(self.padding_mask)[1])


class PaddingFreeLayer(keras.layers.Layer):
    """A layer that skips padding in TensorFlow's graphs, unless `padding_free` is False; it may read packed rows."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.padding_free = True
        self.packed_rows = False

    @property
    def padding_free(self) -> bool:
        """Whether the layer skips padding in TensorFlow's graphs; if False, Keras may choose XLA by itself."""
        return self._padding_free

    @padding_free.setter
    def padding_free(self, value: bool) -> None:
        self._padding_free = checks.boolean(type(self).__name__, "padding_free", value)
        if keras.backend.backend() == "tensorflow":
            self.supports_jit = not value  # XLA needs fixed shapes

    @property
    def packed_rows(self) -> bool:
        """Whether a row may hold several texts: `padding_mask` is then the number of each token's text, 0 = padding."""
        return self._packed_rows

    @packed_rows.setter
    def packed_rows(self, value: bool) -> None:
        self._packed_rows = checks.boolean(type(self).__name__, "packed_rows", value)

    def _packs(self, padding_mask: Any) -> bool:
        return self.padding_free and can_pack(padding_mask)


def packing_of(padding_mask: Any) -> Packing:
    """The packing of a batch with this mask, int or bool `[B, S]`, 1 = real token."""
    is_first = ops.arange(ops.shape(padding_mask)[1]) == 0
    is_real = ops.logical_or(ops.cast(padding_mask, "bool"), is_first)  # [B, S]
    indices = ops.nonzero(ops.reshape(is_real, (-1,)))[0]
    sources = ops.cumsum(ops.cast(ops.reshape(is_real, (-1,)), "int32")) - 1
    return Packing(indices, sources, padding_mask, rows_by_length(is_real, sources, indices, padding_mask))


def can_pack(padding_mask: Any) -> bool:
    """Whether a layer may skip padding: in TensorFlow's graphs, if there is a mask.

    An eager call computes values at padding too, the same as every other implementation.
    """
    return padding_mask is not None and in_tensorflow_graph(padding_mask)


def in_tensorflow_graph(tensor: Any) -> bool:
    """Whether a tensor is symbolic, in a TensorFlow graph."""
    return keras.backend.backend() == "tensorflow" and not hasattr(tensor, "numpy")


def unpacked(packing: Packing, tokens: Any) -> Any:
    """`[B, S, H]` of `[T, H]`, with the tokens attached as an attribute, like Keras's masks.

    Later layers take the tokens, so that nothing in the graph needs the padded tensor.
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
    """The packing and the tokens that a padded tensor was unpacked from with this mask, or None."""
    packing, tokens = _attached(padded)
    return (packing, tokens) if packing is not None and packing.padding_mask is padding_mask else None


def _attached(padded: Any) -> tuple[Packing | None, Any]:
    """The packing and the tokens that `unpacked` attached to a tensor; else None and the tensor."""
    return getattr(padded, "_packed_tokens", (None, padded))


def of_each_token(function: Callable[[Any], Any], hidden: Any) -> Any:
    """Applies a function of single tokens, `[..., K]` of `[..., H]`; to the real tokens only, if they are known."""
    packing, tokens = _attached(hidden)
    return function(tokens) if packing is None else packing.unpack(function(tokens))


def on_tokens(function: Callable[[Any], Any], hidden: Any) -> Any:
    """A function of single tokens that keeps their width, for hidden states; the result knows its tokens again."""
    packing, tokens = _attached(hidden)
    return function(tokens) if packing is None else unpacked(packing, function(tokens))


def first_tokens(hidden: Any) -> Any:
    """The first token of every row, `[B, H]` of `[B, S, H]`."""
    return first_of(*_attached(hidden))


def first_of(packing: Packing | None, tokens: Any) -> Any:
    """The first token of every row, `[B, H]` of `[T, H]`; without a packing, of `[B, S, H]`."""
    return tokens[:, 0] if packing is None else packing.first(tokens)


def at_indices(hidden: Any, indices: Any) -> Any:
    """The tokens `[..., H]` at `indices`, int `[...]`, of the flattened batch `[B * S, H]`."""
    packing, tokens = _attached(hidden)
    if packing is None:
        return ops.take(ops.reshape(tokens, (-1, tokens.shape[-1])), indices, axis=0)
    return tf.gather(tokens, tf.gather(packing.sources, indices))


def add_alike(tokens: Any, others: Any) -> Any:
    """The sum of two tensors `[T, H]`; without broadcasting, TensorFlow can fuse it into the matrix product before."""
    return tf.add_n([tokens, others])
