"""Pieces of words on the host, by the models of the library `tokenizers`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing._host_call import call_on_host
from keras_bert_layers.preprocessing._sentence_pieces import piece_names
from keras_bert_layers.preprocessing._tokens import Tokens
from keras_bert_layers.preprocessing._word_pieces import SUFFIX

# Most words of a text have been met before.
_CACHED_WORDS = 2**16

Pieces: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class _WordEncoder:
    """Encodes words with a model of `tokenizers`, which gives offsets in bytes.

    Args:
        model: the model.
    """

    def __init__(self, model: Any):
        def pieces_of(word: bytes) -> Pieces:
            pieces = model.tokenize(word.decode())
            starts, ends = zip(*(piece.offsets for piece in pieces), strict=True)
            return tuple(piece.id for piece in pieces), starts, ends

        self._pieces_of = functools.lru_cache(_CACHED_WORDS)(pieces_of)

    def encode_words(self, words: tf.Tensor) -> Tokens:
        """The tokens of words `[W]`, none of them empty."""
        return Tokens(*call_on_host(self._encode, words, [tf.int32, tf.int64, tf.int64, tf.int64]))

    def _encode(self, words: np.ndarray) -> tuple[np.ndarray, ...]:
        pieces = [self._pieces_of(word) for word in words]
        ids, starts, ends = ([part[index] for part in pieces] for index in range(3))
        row_splits = np.cumsum([0, *map(len, ids)], dtype=np.int64)
        return _flat(ids, np.int32), row_splits, _flat(starts, np.int64), _flat(ends, np.int64)


class WordPieceModel(_WordEncoder):
    """The longest pieces of words.

    Args:
        tokens: the pieces.
        max_word_length: a word of more characters becomes `unknown`.
        unknown: one of the tokens.
        splits_texts: whether an engine that can split texts into words should; this one cannot.
    """

    splits_texts = False

    def __init__(self, tokens: list[str], *, max_word_length: int, unknown: str, splits_texts: bool):
        from tokenizers.models import WordPiece

        ids = {token: index for index, token in enumerate(tokens)}
        super().__init__(
            WordPiece(
                ids,
                unk_token=unknown,
                max_input_chars_per_word=max_word_length,
                continuing_subword_prefix=SUFFIX,
            )
        )


class SentencePieces(_WordEncoder):
    """The pieces of words with the largest sum of scores.

    Args:
        vocabulary: the pieces.
        scores: their logarithms of probability; None for a token that is no piece.
        unknown_id: the id of the piece for characters in no piece.
    """

    def __init__(self, vocabulary: Sequence[str], scores: Sequence[float | None], *, unknown_id: int):
        from tokenizers.models import Unigram

        # The smallest score is that of a piece: an unknown character's is counted from it.
        largest = max(score for score in scores if score is not None)
        names = piece_names(vocabulary, scores)
        values = [largest if score is None else score for score in scores]
        names[unknown_id] = vocabulary[unknown_id]  # found in text by its name
        super().__init__(Unigram(list(zip(names, values, strict=True)), unknown_id, byte_fallback=False))


def _flat(parts: Sequence[tuple[int, ...]], dtype: Any) -> np.ndarray:
    return np.fromiter(itertools.chain.from_iterable(parts), dtype)
