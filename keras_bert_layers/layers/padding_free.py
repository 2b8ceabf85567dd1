"""Padding-free computation: layers that work on the real tokens of a batch only, in TensorFlow's graphs.

`RealTokens` selects the real tokens of a padded batch into one list, and pads them again. For attention, which needs
complete rows, `RowGroups` splits the batch into long and short rows.

Axes: B batch, S sequence, T real tokens, G rows of a group, L their length, H any width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Unpack

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import LayerOptions, Tensor


class RealTokens(NamedTuple):
    """The positions of the real tokens in a padded batch, on TensorFlow.

    `tf.gather` selects the tokens. `keras.ops.take` also supports negative indices, and after its extra operations
    TensorFlow no longer knows that two tensors have the same number of rows, so it does not fuse the residuals into the
    matrix products.

    The first position of every row counts as real, so that a row of only padding has a token too.

    Args:
        indices: int `[T]`, the indices of the real tokens in the flattened batch, in order.
        sources: int `[B * S]`, the real token for each position; for padding, the last real token before it.
        padding_mask: the mask `[B, S]`.
        rows_by_length: the rows in groups of about one length, for attention.
    """

    indices: Any
    sources: Any
    padding_mask: Any
    rows_by_length: RowGroups

    def select(self, padded: Tensor) -> Any:
        """The real tokens `[T, ...]` of `[B, S, ...]`."""
        return tf.gather(ops.reshape(padded, (-1, *padded.shape[2:])), self.indices)

    def pad(self, tokens: Tensor) -> Any:
        """`[B, S, H]` of `[T, H]`; padding becomes a real token of the same row."""
        return ops.reshape(tf.gather(tokens, self.sources), (*ops.shape(self.padding_mask), tokens.shape[-1]))

    def first(self, tokens: Tensor) -> Any:
        """The first token of every row, `[B, H]` of `[T, H]`."""
        batch, length = ops.shape(self.padding_mask)
        return tf.gather(tokens, tf.gather(self.sources, ops.arange(batch) * length))

    def all_rows(self) -> RowGroups:
        """The rows as one group, of the length of the batch."""
        shape = tf.shape(self.padding_mask)
        every_row = tf.range(shape[0])
        group = RowGroup(every_row, tf.reshape(self.sources, shape), self.padding_mask)
        return RowGroups((group,), self.indices, every_row)

    def rows(self) -> Any:
        """The index of the row of every real token, int `[T]`."""
        return self.indices // ops.shape(self.padding_mask)[1]

    def at_positions(self, values: Tensor) -> Any:
        """`[T, H]`: the row of `values` `[S, H]` at the position of each real token."""
        return tf.gather(values, self.indices % ops.shape(self.padding_mask)[1])


class RowGroup(NamedTuple):
    """Some rows of a batch, cut after the last real token of the longest.

    Args:
        rows: int `[G]`, the indices of the rows in the batch.
        sources: int `[G, L]`, the real token for each position; for padding, the last real token before it.
        padding_mask: the mask `[G, L]`.
    """

    rows: Any
    sources: Any
    padding_mask: Any

    def pad(self, tokens: Tensor) -> Any:
        """`[G, L, H]` of the real tokens `[T, H]` of the batch."""
        return tf.gather(tokens, self.sources)

    def pick(self, values: Tensor) -> Any:
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

    def select(self, padded: Sequence[Any]) -> Any:
        """The real tokens `[T, H]` of one `[G, L, H]` per group."""
        width = padded[0].shape[-1]
        return tf.gather(_concatenated([tf.reshape(part, (-1, width)) for part in padded]), self.indices)

    def join(self, values: Sequence[Any]) -> Any:
        """`[B, H]`, in the order of the batch, of one `[G, H]` per group."""
        return tf.gather(_concatenated(values), self.ranks)


def _concatenated(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else tf.concat(parts, axis=0)


def real_tokens_of(padding_mask: Any) -> RealTokens:
    """The real tokens of a batch with this mask, int or bool `[B, S]`, 1 = real token."""
    is_first = ops.arange(ops.shape(padding_mask)[1]) == 0
    is_real = ops.logical_or(ops.cast(padding_mask, "bool"), is_first)  # [B, S]
    indices = ops.nonzero(ops.reshape(is_real, (-1,)))[0]
    sources = ops.cumsum(ops.cast(ops.reshape(is_real, (-1,)), "int32")) - 1
    return RealTokens(indices, sources, padding_mask, _rows_by_length(is_real, sources, indices, padding_mask))


def _rows_by_length(is_real: Tensor, sources: Tensor, indices: Tensor, padding_mask: Tensor) -> RowGroups:
    """Splits the rows into long and short ones, such that the two groups have the fewest attention scores.

    The order of the tokens does not change: layers that work on single tokens are independent of the groups.

    Args:
        is_real: bool `[B, S]`, whether a position has a token; at least one in every row.
        sources: int `[B * S]`, the real token for each position.
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

    def group(rows: Tensor, longest: Any) -> RowGroup:
        return RowGroup(rows, tf.gather(sources, rows)[:, :longest], tf.gather(padding_mask, rows)[:, :longest])

    groups = (group(by_length[:num_long], long), group(by_length[num_long:], short))
    return RowGroups(groups, starts + indices % length, ranks)


def _fewest_scores(descending: Any) -> Any:
    """The number of rows in the long group, int; from descending lengths `[B + 1]`."""
    num_long = tf.range(tf.cast(tf.size(descending), "float32"))
    num_short = num_long[-1] - num_long
    num_scores = num_long * descending[0] ** 2 + num_short * descending**2
    return tf.argmin(num_scores, output_type="int32")


class PaddingFreeLayer(keras.layers.Layer):
    """A layer that skips padding in TensorFlow's graphs, unless `padding_free` is False; it may read packed rows."""

    def __init__(self, **kwargs: Unpack[LayerOptions]):
        super().__init__(**kwargs)
        self.padding_free = True
        self.packed_rows = False

    @property
    def padding_free(self) -> bool:
        """Whether the layer skips padding in TensorFlow's graphs; if False, Keras may choose XLA on its own."""
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

    def _skips_padding(self, padding_mask: Any) -> bool:
        """Whether this call skips padding. An eager call computes values there too, as other implementations do."""
        if not self.padding_free or padding_mask is None or hasattr(padding_mask, "_is_computed"):
            return False
        return in_tensorflow_graph(padding_mask)


def computed_everywhere(padding_mask: Tensor) -> Any:
    """The same mask, under which positions that nothing attends to have values too, in TensorFlow's graphs as well."""
    marked: Any = ops.copy(padding_mask)
    if in_tensorflow_graph(marked):
        marked._is_computed = True
    return marked


def in_tensorflow_graph(tensor: Tensor) -> bool:
    """Whether a tensor is symbolic, in a TensorFlow graph."""
    return keras.backend.backend() == "tensorflow" and not hasattr(tensor, "numpy")


def with_padding(real: RealTokens, tokens: Tensor) -> Any:
    """`[B, S, H]` of `[T, H]`, with the tokens attached as an attribute, like Keras's masks.

    Later layers take the tokens, so that nothing in the graph needs the padded tensor.
    """
    padded = real.pad(tokens)
    padded._real_tokens = (real, tokens)
    return padded


def without_padding(padded: Tensor, padding_mask: Tensor) -> tuple[RealTokens, Any]:
    """The positions of the real tokens by a mask, and the tokens `[T, H]` of a padded tensor."""
    known = known_tokens(padded, padding_mask)
    if known is not None:
        return known
    real = real_tokens_of(padding_mask)
    return real, real.select(padded)


def known_tokens(padded: Tensor, padding_mask: Any) -> tuple[RealTokens, Any] | None:
    """The positions and the tokens that `with_padding` padded with this mask, or None."""
    real, tokens = _attached(padded)
    return (real, tokens) if real is not None and real.padding_mask is padding_mask else None


def _attached(padded: Tensor) -> tuple[RealTokens | None, Any]:
    """The positions and the tokens that `with_padding` attached to a tensor; else None and the tensor."""
    return getattr(padded, "_real_tokens", (None, padded))


def of_each_token(function: Callable[[Any], Any], hidden: Tensor) -> Any:
    """Applies a function of single tokens, `[..., K]` of `[..., H]`; to the real tokens only, if they are known."""
    real, tokens = _attached(hidden)
    return function(tokens) if real is None else real.pad(function(tokens))


def on_tokens(function: Callable[[Any], Any], hidden: Tensor) -> Any:
    """The same for a function that keeps the width; later layers find the real tokens on its output too."""
    real, tokens = _attached(hidden)
    return function(tokens) if real is None else with_padding(real, function(tokens))


def first_tokens(hidden: Tensor) -> Any:
    """The first token of every row, `[B, H]` of `[B, S, H]`."""
    return first_of(*_attached(hidden))


def first_of(real: RealTokens | None, tokens: Tensor) -> Any:
    """The first token of every row, `[B, H]` of `[T, H]`; without positions, of `[B, S, H]`."""
    return tokens[:, 0] if real is None else real.first(tokens)


def at_indices(hidden: Tensor, indices: Tensor) -> Any:
    """The tokens `[..., H]` at `indices`, int `[...]`, of the flattened batch `[B * S, H]`."""
    real, tokens = _attached(hidden)
    if real is None:
        return ops.take(ops.reshape(tokens, (-1, tokens.shape[-1])), indices, axis=0)
    return tf.gather(tokens, tf.gather(real.sources, indices))
