"""Texts, or rows of words, whose outputs are one vector per token or per word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Columns, Outputs, Rows, Strings, Tensor
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.preprocessors.span_preprocessor import SpanPreprocessor
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.preprocessing.preprocessors.word_aligner import NO_WORD, AlignedWords, WordAligner
from keras_bert_layers.tasks.feeding.columns import as_columns, on_host
from keras_bert_layers.tasks.inputs.inputs import Inputs
from keras_bert_layers.tasks.inputs.tags import as_words, begins_given_word, ends_given_word, holds_words

# Padded, they take 512 MB in float32.
NUMBERS_PER_BLOCK = 2**27


def single_texts(owner: str, preprocessor: Any) -> BertPreprocessor:
    """A preprocessor as it is if it takes single texts; else one that does, with the same tokenizer and length."""
    if isinstance(preprocessor, SpanPreprocessor) or getattr(preprocessor, "truncation", "") == "only_second":
        return BertPreprocessor(preprocessor.tokenizer, preprocessor.max_length, padding=preprocessor.padding)
    cure = "Make one with `BertPreprocessor(tokenizer)` or `load_preprocessor(source)`."
    return checks.instance(owner, "preprocessor", preprocessor, BertPreprocessor, cure)


class FeatureInputs(Inputs):
    """Texts, or rows of words; a row of outputs is the vectors of its tokens or words, `(tokens, ...)`.

    Long rows are read through windows, and a token gets its vector from the window in which it has most context.

    Args:
        owner: the class that asks, for errors.
        preprocessor: a `BertPreprocessor`.
        per: `"token"`, or `"word"` for the means over the pieces of words.
        size: how many numbers the model returns for a token.
    """

    def __init__(self, owner: str, preprocessor: TextLayer, *, per: str, size: int):
        super().__init__(owner, preprocessor, most_texts=1)
        self._per = per
        num_tokens = NUMBERS_PER_BLOCK // size
        self.block_rows = max(32, min(self.block_rows, num_tokens // preprocessor.max_length))
        self.block_characters = min(self.block_characters, num_tokens)

    def columns(self, x: Rows, *, first_row: int = 0) -> Any:
        """Rows of words as ragged strings, or texts as an array, checked row by row."""
        if holds_words(x) and not isinstance(x, tuple):
            return as_words(self.owner, x, first_row=first_row)
        return as_columns(self.owner, x, most=1, first_row=first_row)

    def read_together(self, columns: Columns) -> None:
        """Long texts are read through windows."""

    def aligner(self) -> WordAligner:
        """Aligns words with the tokens of the preprocessor."""
        return self.made_once(WordAligner, self.bucketed())

    def outputs(self, columns: Any, run: Callable[..., Any]) -> list[np.ndarray]:
        """The vectors of each row, float32 `(tokens or words, ...)`."""
        pieces = on_host(self._aligned, columns)
        states = run(pieces.inputs, self.bucketed())  # [windows, S, ...]
        vectors, sizes = on_host(lambda states: self._vectors(tf.convert_to_tensor(states), pieces), states)
        return np.split(vectors.numpy(), np.cumsum(sizes.numpy())[:-1])

    def join(self, blocks: list[Any]) -> list[np.ndarray]:
        """One array per row."""
        return [row for block in blocks for row in block]

    def empty(self, x: Rows, outputs: Outputs) -> list[np.ndarray]:
        """No rows."""
        return []

    def serve(self, run: Callable[..., Any], texts: Strings) -> dict[str, Any]:
        """Strings to `features`, `start` and `end`, `(batch, tokens or words, ...)`, in graph.

        Args:
            run: the model, from the ids of any number of windows to `(windows, sequence, ...)`.
            texts: strings `(batch,)`.
        """
        pieces = self._aligned(texts)
        vectors, sizes = self._vectors(run(pieces.inputs), pieces)
        width = tf.maximum(tf.reduce_max(sizes), 1)

        def by_row(values: Tensor, fill: Any) -> Any:
            ragged = tf.RaggedTensor.from_row_lengths(values, sizes, validate=False)
            return ragged.to_tensor(fill, shape=tf.stack([-1, width, *values.shape[1:]]))

        begins, ends = self._bounds(pieces)
        starts, ends = tf.boolean_mask(pieces.starts, begins), tf.boolean_mask(pieces.ends, ends)
        return {"features": by_row(vectors, 0.0), "start": by_row(starts, NO_WORD), "end": by_row(ends, NO_WORD)}

    def _aligned(self, texts: Strings) -> AlignedWords:
        """The tokens of texts, or the pieces of their words."""
        aligner = self.aligner()
        return aligner.align_tokens(texts) if self._per == "token" else aligner.align_pieces(texts)

    def _bounds(self, pieces: AlignedWords) -> tuple[tf.Tensor, tf.Tensor]:
        """Whether each piece, `(batch, pieces)`, is the first of a token or word, and whether it is the last."""
        if self._per == "token":
            return (pieces.places != NO_WORD,) * 2
        return begins_given_word(pieces.word_ids), ends_given_word(pieces.word_ids)

    def _vectors(self, states: tf.Tensor, pieces: AlignedWords) -> tuple[tf.Tensor, tf.Tensor]:
        """The vectors of all tokens or words, `[N, ...]`, row by row, and how many each row has, `[B]`."""
        is_piece, (begins, _) = pieces.places != NO_WORD, self._bounds(pieces)
        places = tf.boolean_mask(pieces.places, is_piece)
        # Positions count in windows as wide as they were made; these may be wider than the longest needs.
        width = tf.shape(pieces.inputs["token_ids"])[1]
        vectors = tf.gather_nd(states, tf.stack([places // width, places % width], axis=1))
        if self._per == "word":
            words = tf.cumsum(tf.cast(tf.boolean_mask(begins, is_piece), tf.int32)) - 1
            vectors = tf.math.segment_mean(vectors, words)
        return vectors, tf.reduce_sum(tf.cast(begins, tf.int64), axis=1)
