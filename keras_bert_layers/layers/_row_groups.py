"""Groups of rows of similar length, so that attention does less work on padding.

Axes: B batch, S sequence, T real tokens, G rows of a group, L the longest of them, H any width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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
