"""Rows of words with one tag per word, and texts with labelled spans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Columns, Labels, Rows, Tensor
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.preprocessing.preprocessors.word_aligner import NO_WORD, WordAligner
from keras_bert_layers.tag_scheme import TagScheme
from keras_bert_layers.tasks.feeding.columns import as_columns, is_ragged, on_host, stacked, without_none
from keras_bert_layers.tasks.inputs.inputs import Inputs
from keras_bert_layers.tasks.inputs.tags import (
    IGNORED,
    as_spans,
    as_tags,
    as_words,
    begins_given_word,
    check_words_dataset,
    ends_given_word,
    holds_words,
    tags_of_spans,
    tags_of_words,
)


class WordLogits(NamedTuple):
    """The logits of the words of a block of rows.

    Attributes:
        logits: float32 `(rows, words, tags)`.
        is_word: bool `(rows, words)`, False for padding.
        is_given: bool `(rows, words)`, whether a word is the first part of a given word.
        is_last: bool `(rows, words)`, whether it is the last part of one.
    """

    logits: np.ndarray
    is_word: np.ndarray
    is_given: np.ndarray
    is_last: np.ndarray


class WordInputs(Inputs):
    """Rows of words with one tag per word, or texts with labelled spans; a row of outputs is the logits of its words.

    Long rows are read through windows. For training, `encode` gives the windows and a dictionary: the `"positions"` and
    `"word_ids"` of the words, as in `AlignedWords`, and their `"tags"` and `"given_tags"`.

    Args:
        owner: the task's class, for errors.
        preprocessor: a `BertPreprocessor`, or None.
        tag_names: the names of the tags.
        scheme: what they mean for entities.
        stride: tokens that two windows of a long row share; None for a quarter of `max_length`.
    """

    column_names = ("tokens",)
    one_weight_per_row = True
    counts_in_batch = ("text",)

    def __init__(
        self,
        owner: str,
        preprocessor: TextLayer | None,
        tag_names: Sequence[str],
        *,
        scheme: TagScheme,
        stride: int | None,
    ):
        super().__init__(owner, preprocessor)
        self._tag_names = tag_names
        self.scheme = scheme
        self._stride = stride

    @property
    def label_names(self) -> Sequence[str]:
        """The names of the tags."""
        return self._tag_names

    def aligner(self, preprocessor: TextLayer | None = None) -> WordAligner:
        """Aligns words with the tokens of a preprocessor, this object's own if None."""
        return self.made_once(WordAligner, preprocessor or self.preprocessor, stride=self._stride)

    def columns(self, x: Rows, *, first_row: int = 0) -> Any:
        """Rows of words as ragged strings, or texts as an array, checked row by row."""
        if isinstance(x, tuple):
            raise TypeError(checks.message(self.owner, "x", "be a list of texts, or of lists of words", type(x)))
        return (as_words if holds_words(x) else as_columns)(self.owner, x, first_row=first_row)

    def check_dataset(self, dataset: tf.data.Dataset) -> None:
        """Refuses a dataset of neither words with tags nor texts with spans; ValueError."""
        check_words_dataset(self.owner, dataset)

    def labels(self, columns: Any, y: Labels) -> Any:
        """Tags of words, or spans of texts, as ragged columns, checked row by row."""
        if is_ragged(columns):
            return as_tags(self.owner, y, columns, self._tag_names)
        return as_spans(self.owner, y, columns, self.scheme.labels)

    def class_weight(self, x: Rows, class_weight: Any, y: Any = None) -> Mapping[Any, float]:
        """Refused for words and texts; unchanged for ids."""
        if self.is_raw(x):
            cure = "Weigh rows with `sample_weight`."
            raise ValueError(checks.message(self.owner, "class_weight", "be None", class_weight, cure))
        return super().class_weight(x, class_weight)

    def encode(self, x: Columns, y: Any = None, sample_weight: Tensor | None = None) -> tuple[Any, ...]:
        """One batch as windows and, word by word, positions and tags, in graph."""
        words = self.aligner(self.bucketed()).align(x)
        by_word = {"positions": words.places, "word_ids": words.word_ids}
        if y is not None:
            if isinstance(x, tf.RaggedTensor):
                tags = tags_of_words(self.owner, y, words.word_ids, self._tag_names, self.scheme)
            else:
                tags = tags_of_spans(self.owner, x, y, words, self.scheme)
            by_word |= {"tags": tags, "given_tags": tf.where(begins_given_word(words.word_ids), tags, IGNORED)}
        return without_none(words.inputs, by_word, sample_weight)

    def before_cut(self, x: Columns) -> None:
        """None: positions count in the windows of all rows."""

    def outputs(self, columns: Columns, run: Callable[..., Any]) -> list[np.ndarray]:
        """The logits of the given words of each row, `(words, tags)`."""
        words = self.word_logits(columns, run)
        return [row[is_given] for row, is_given in zip(words.logits, words.is_given, strict=True)]

    def word_logits(self, columns: Any, run: Callable[..., Any]) -> WordLogits:
        """The logits of all words that the model sees, and which of them begin a given word."""
        inputs, words = on_host(self.encode, columns)
        logits = run(inputs, self.bucketed())  # [windows, S, tags]
        positions = words["positions"].numpy()
        # Positions count in windows as wide as they were made; these may be wider than the longest needs.
        window, position = np.divmod(np.maximum(positions, 0), max(inputs["token_ids"].shape[1], 1))
        is_given, is_last = (find(words["word_ids"]).numpy() for find in (begins_given_word, ends_given_word))
        return WordLogits(logits[window, position], positions != NO_WORD, is_given, is_last)

    def join(self, blocks: list[Any]) -> np.ndarray:
        """Float32 `(rows, words, tags)`, 0 after the last word of a row."""
        return stacked([row[None] for block in blocks for row in block], self.fill_value)

    def read_together(self, columns: Columns) -> None:
        """Long texts are read through windows."""

    def answer_columns(self, x: Rows) -> list[Any]:
        """The column of texts in which to find entities."""
        columns = self.columns(x)
        if is_ragged(columns):
            cure = "Ask `predict_tags` for the tags of given words."
            raise TypeError(checks.message(self.owner, "x", "be texts", "rows of words", cure))
        return [columns]

    def require_words(self, columns: Columns) -> None:
        """Refuses a block of texts where rows of words are wanted; TypeError."""
        if not is_ragged(columns) and len(columns):
            cure = "Ask `answer` for the entities of texts."
            raise TypeError(checks.message(self.owner, "words", "be rows of words", "texts", cure))
