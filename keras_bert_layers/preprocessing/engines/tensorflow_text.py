"""The text engine in graph, by operations of tensorflow-text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from keras_bert_layers._internal.lazy import tf, tf_text
from keras_bert_layers.preprocessing.engines import tensorflow_text_internals
from keras_bert_layers.preprocessing.engines.character_table import place_of_field
from keras_bert_layers.preprocessing.engines.sentence_pieces import SentencePieces
from keras_bert_layers.preprocessing.tokens.markers import SUFFIX
from keras_bert_layers.preprocessing.tokens.tokens import Tokens

__all__ = ["IN_GRAPH", "CharacterReplacer", "SentencePieces", "WordPieceModel", "split"]

IN_GRAPH = True
MAX_CHARACTER_BYTES = 4
# tensorflow/text, `fast_wordpiece_tokenizer_model.fbs`: the index of the field `max_bytes_per_token`.
MAX_BYTES_FIELD = 4


class CharacterReplacer:
    """Replaces characters in texts by a table, and finds where each byte comes from.

    Args:
        model: a `FastBertNormalizerModel`.
    """

    def __init__(self, model: bytes):
        self.model = tf.constant(np.frombuffer(model, np.uint8))
        self._normalizer = tf_text.FastBertNormalizer(model_buffer=self.model)

    def replace(self, texts: tf.Tensor) -> tf.Tensor:
        """The texts `[B]` with all characters replaced."""
        return self._normalizer.normalize(texts)

    def replace_with_sources(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.RaggedTensor]:
        """The same, and the origin of each byte and of the end, ragged int64 `[B, bytes + 1]`."""
        return self._normalizer.normalize_with_offsets(texts)


# A tenth of a second each, mostly for all punctuation of Unicode; a task, its copies and its exports share one. 2 MB
# for 30,000 tokens.
@functools.lru_cache(maxsize=8)
def _built(
    build: Callable[..., bytes], tokens: tuple[str, ...], max_bytes: int, unknown: str, splits_texts: bool
) -> bytes:
    return build(list(tokens), max_bytes, SUFFIX, unknown, not splits_texts, False)


class WordPieceModel:
    """WordPiece: the longest pieces of words, by an op that counts the bytes of a word, not its characters.

    Args:
        tokens: the pieces.
        max_word_length: a word of more characters becomes `unknown`.
        unknown: one of the tokens.
        splits_texts: whether to split texts into words.
    """

    def __init__(self, tokens: list[str], *, max_word_length: int, unknown: str, splits_texts: bool):
        self.splits_texts = splits_texts
        most_bytes = MAX_CHARACTER_BYTES * max_word_length
        max_bytes = max_word_length if splits_texts else most_bytes
        build = tensorflow_text_internals.find(tensorflow_text_internals.BUILD_WORDPIECE_MODEL)
        model = _built(build, tuple(tokens), max_bytes, unknown, splits_texts)
        self.model = tf.constant(np.frombuffer(model, np.uint8))
        self._limit = np.array([most_bytes], "<i4").view(np.uint8)
        position = place_of_field(model, MAX_BYTES_FIELD)
        self._limit_indices = np.arange(position, position + self._limit.size)[:, None]

    def encode_texts(self, texts: tf.Tensor) -> Tokens:
        """The tokens of whole texts `[B]`; a word of more than `max_word_length` bytes is unknown."""
        return _encode(texts, self.model)

    def encode_words(self, words: tf.Tensor) -> Tokens:
        """The tokens of words `[W]` of up to `max_word_length` characters."""
        model = self.model
        if self.splits_texts:
            model = tf.tensor_scatter_nd_update(model, self._limit_indices, self._limit)
        return _encode(words, model)


def split(texts: tf.Tensor, boundary: str, kept_boundary: str) -> Sequence[tf.Tensor]:
    """Splits texts `[B]` at each match of an RE2 pattern: spans, their starts and ends, and row splits."""
    op = tensorflow_text_internals.find(tensorflow_text_internals.REGEX_SPLIT)
    return op(texts, f"({boundary})", f"({kept_boundary})")


def _encode(texts: tf.Tensor, model: tf.Tensor) -> Tokens:
    tokenizer = tf_text.FastWordpieceTokenizer(model_buffer=model, token_out_type=tf.int32)
    ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
    return Tokens(ids.values, ids.row_splits, starts.values, ends.values)
