"""Counts the tokens of texts, and warns if texts are longer than the model reads."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Columns, Strings
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.preprocessing.tokenizer import Tokenizer
from keras_bert_layers.tasks.feeding.columns import as_tuple
from keras_bert_layers.tasks.feeding.kind_of_data import KindOfData


def token_counts(tokenizer: Tokenizer, x: Columns) -> tf.Tensor:
    """The number of tokens in each row of a batch, int64 `(rows,)`, without special ones.

    Tokenizing a text once more costs little beside a training step on it, and its length in bytes is a poor estimate:
    texts of equally many bytes differ by a quarter in their tokens.

    Args:
        tokenizer: a `BertTokenizer`.
        x: texts, a tuple of columns of texts, or ragged rows of words.
    """
    found = tf.constant(0, tf.int64)
    for column in as_tuple(x):
        rank = column.shape.rank
        counts = tokenizer.tokenize(column).row_lengths(axis=rank)
        found += counts if rank == 1 else tf.reduce_sum(counts, axis=1)
    return found


def num_special_tokens(tokenizer: Tokenizer, num_columns: int) -> int:
    """The number of special tokens around the texts of a row."""
    return 2 + tokenizer.num_pair_separators * (num_columns - 1)


def lengths_of_cut(preprocessor: TextLayer, columns: Sequence[np.ndarray], prompt: str = "") -> np.ndarray:
    """The tokens of each row that is longer than `max_length`, with special ones and the prompt; int64, in order.

    Args:
        preprocessor: a `BertPreprocessor`.
        columns: arrays of strings `(rows,)`, one or two, which are read together.
        prompt: a string that is read before each row.
    """
    tokenizer = preprocessor.tokenizer
    num_others = num_special_tokens(tokenizer, len(columns))
    num_others += int(token_counts(tokenizer, tf.constant([prompt]))[0]) if prompt else 0
    room = preprocessor.max_length - num_others
    sizes = np.sum([[_num_bytes(text) for text in column] for column in columns], axis=0)
    may_be_cut = sizes > room  # a token has at least one byte
    if not may_be_cut.any():
        return np.empty(0, np.int64)
    chosen = tuple(tf.constant(column[may_be_cut], tf.string) for column in columns)
    lengths = np.asarray(token_counts(tokenizer, chosen))
    return lengths[lengths > room] + num_others


# The rows that are examined: so few that this costs little beside a step.
EXAMINED_ROWS = 1024


class CutTexts:
    """Warns, once, that texts are cut at `max_length`.

    Args:
        owner: the task's class.
    """

    def __init__(self, owner: str):
        self._owner = owner
        self._has_warned = False

    def look(self, preprocessor: TextLayer, texts: Strings, prompt: str = "") -> None:
        """Examines the first rows; a UserWarning states how many of them are cut.

        Args:
            preprocessor: a `BertPreprocessor`.
            texts: an array of strings `(rows,)`, or a tuple of two, which are read together.
            prompt: a string that is read before each.
        """
        columns = [column[:EXAMINED_ROWS] for column in as_tuple(texts)]
        are_texts = all(len(column) and isinstance(column[0], str | bytes) for column in columns)
        if self._has_warned or not are_texts:  # a user's own task may have several texts per row
            return
        lengths = lengths_of_cut(preprocessor, columns, prompt)
        if len(lengths):
            self._has_warned = True
            warnings.warn(
                f"`{self._owner}`: {len(lengths)} of the {len(columns[0])} texts that were looked at are longer than "
                f"`max_length={preprocessor.max_length}` tokens, and are cut; the longest has "
                f"{int(lengths.max())}. Give the preprocessor a larger `max_length`, up to the backbone's "
                "`max_sequence_length`, or split the texts; classifiers, cross-encoders and encoders of sentences read "
                'all of them with `long_texts="windows"`. This warning is shown once.',
                stacklevel=2,
            )


def look_for_cuts(data: KindOfData, columns: Columns) -> None:
    """Warns, once, if texts of a kind of data are longer than the model reads."""
    texts = None if data.long_texts is not None else data.read_together(columns)
    if all(isinstance(column, np.ndarray) for column in as_tuple(texts)):
        data.cuts.look(data.preprocessor, texts, data.prompt)


def _num_bytes(text: Any) -> int:
    return len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode("utf-8", "replace"))
