"""How many tokens rows of text have."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal.lazy import tf


def token_counts(tokenizer: Any, x: Any) -> tf.Tensor:
    """The number of tokens in each row of a batch, int64 `(rows,)`, without special ones.

    Tokenizing a text once more costs little beside a training step on it, and its length in bytes predicts less: texts
    of equally many bytes differ by a quarter in their tokens.

    Args:
        tokenizer: a `BertTokenizer`.
        x: texts, a tuple of columns of texts, or ragged rows of words.
    """
    found = tf.constant(0, tf.int64)
    for column in x if isinstance(x, tuple) else (x,):
        rank = column.shape.rank
        counts = tokenizer.tokenize(column).row_lengths(axis=rank)
        found += counts if rank == 1 else tf.reduce_sum(counts, axis=1)
    return found


def num_special_tokens(tokenizer: Any, num_columns: int) -> int:
    """How many special tokens are put around the texts of a row."""
    return 2 + tokenizer.num_pair_separators * (num_columns - 1)
