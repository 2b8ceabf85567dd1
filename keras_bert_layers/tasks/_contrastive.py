"""Learning from pairs that belong together: the other rows of a batch are what a text is told apart from."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_bert_layers._internal.lazy import tf

#: The key of the numbers that say which texts of a batch are the same.
TEXTS = "texts"
#: The number of a negative that is not there: the empty string that fills up a short row.
ABSENT = -1
# Finite, as a logit of minus infinity times a label of zero would be NaN.
EXCLUDED = -1e9


def text_numbers(table: Any) -> Any:
    """A number for each text of a batch, the same for texts that are equal byte for byte; in graph.

    Args:
        table: string `(batch, columns)`: a text, what belongs to it, and none or more negatives, where an empty string
            is no negative.

    Returns:
        int32 `(batch, columns)`, with `ABSENT` for no negative.
    """
    numbers = tf.reshape(tf.unique(tf.reshape(table, [-1])).idx, tf.shape(table))
    is_absent = tf.equal(table[:, 2:], "")
    numbers = tf.concat([numbers[:, :2], tf.where(is_absent, ABSENT, numbers[:, 2:])], axis=1)
    return tf.ensure_shape(numbers, table.shape)


def column_by_column(table: Any) -> Any:
    """A tensor `(batch, columns)` as `(columns * batch,)`, one column after the other; in graph."""
    return tf.reshape(tf.transpose(table), [-1])


def joined(columns: Any) -> Any:
    """String tensors `(batch,)` and `(batch, texts)` side by side in one `(batch, columns)`."""
    columns = [tf.convert_to_tensor(column, tf.string) for column in columns]
    return tf.concat([column[:, None] if column.shape.rank == 1 else column for column in columns], axis=1)


def in_batch_logits(vectors: Any, candidates: Any, *, temperature: float, texts: Any = None) -> Any:
    """How well each row goes with each candidate of the batch: dot products over a temperature.

    Row i's own partner is candidate i. Left out (a logit of -1e9) is what would be punished for being right: a
    candidate that is the same text as a partner of this row, or of another row with the same first text, or the same
    text as the row's own first; and every negative that is absent.

    Args:
        vectors: float32 `(batch, hidden_dim)`.
        candidates: float32 `(candidates, hidden_dim)`: the partners of all rows, then all first negatives, and so on.
        temperature: what the dot products are divided by.
        texts: `text_numbers` of the batch, or None where all texts count as different.

    Returns:
        float32 `(batch, candidates)`.

    References:
        Henderson et al. 2017, arXiv:1705.00652, section 4.4; `MultipleNegativesRankingLoss` of sentence-transformers
        has the same logits where no text repeats.
    """
    logits = ops.matmul(vectors, ops.transpose(candidates)) / temperature  # [B, C]
    if texts is None:
        return logits
    first, partner = texts[:, 0], texts[:, 1]  # [B]
    others = ops.reshape(ops.transpose(texts[:, 1:]), (-1,))  # [C]
    same_first = ops.cast(first[:, None] == first[None, :], "float32")  # [B, B]
    same_partner = ops.cast(partner[:, None] == others[None, :], "float32")  # [B, C]
    is_right = ops.matmul(same_first, same_partner) > 0
    is_itself = first[:, None] == others[None, :]
    is_own = ops.arange(ops.shape(logits)[0])[:, None] == ops.arange(ops.shape(logits)[1])[None, :]
    left_out = ops.logical_or(ops.logical_or(is_right, is_itself), others[None, :] == ABSENT)
    return ops.where(ops.logical_and(left_out, ops.logical_not(is_own)), EXCLUDED, logits)


def in_both_directions(logits: Any) -> Any:
    """The logits with, below them, those of each partner for all rows.

    Args:
        logits: what `in_batch_logits` returns, `(batch, candidates)`.

    Returns:
        `(2 * batch, candidates)`; row `batch + i` is partner i among the rows of the batch, and its label is i.
    """
    num_rows = ops.shape(logits)[0]
    backward = ops.transpose(logits[:, :num_rows])  # [B, B]
    filling = ops.full_like(logits[:, num_rows:], EXCLUDED)
    return ops.concatenate([logits, ops.concatenate([backward, filling], axis=1)], axis=0)


def row_numbers(vectors: Any) -> Any:
    """The labels of `in_batch_logits`: 0, 1, 2, ... for `(batch, ...)`."""
    return ops.arange(ops.shape(vectors)[0])
