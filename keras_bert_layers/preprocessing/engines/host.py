"""The text engine on the host, for where tensorflow-text is not installed: Python and the library `tokenizers`.

A graph calls it through `tf.numpy_function`, so it runs in this process only, and cannot be exported.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.numpy_tensorflow.patterns import compiled, decode_bytes
from keras_bert_layers._internal.numpy_tensorflow.patterns import parts as parts_of
from keras_bert_layers.preprocessing.engines.character_table import (
    LENGTH_BITS,
    MAX_REPLACEMENT_BYTES,
    NUL_FIELD,
    POOL_FIELD,
    REPLACED,
    TRIE_FIELD,
    place_of_field,
    vector_of_field,
)
from keras_bert_layers.preprocessing.engines.sentence_pieces import piece_names
from keras_bert_layers.preprocessing.tokens.markers import SUFFIX
from keras_bert_layers.preprocessing.tokens.tokens import Tokens

if TYPE_CHECKING:
    import keras

__all__ = ["IN_GRAPH", "CharacterReplacer", "SentencePieces", "WordPieceModel", "split"]

IN_GRAPH = False
_NUM_CODES = 0x110000
# `surrogateescape` makes each byte that is not UTF-8 a code of its own.
_ESCAPED = slice(0xDC80, 0xDD00)
_UNKNOWN = -1
_CACHED_WORDS = 2**16
_MARK = "\0"  # in no text that is split
# Kinds of what is between spans.
_DROPPED, _KEPT, _END = range(3)

Pieces: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class _CharacterReplacer:
    """Replaces characters in texts by a table, and finds where each byte comes from.

    A replacement is looked up in the table's trie when its character is first met.

    Args:
        model: a `FastBertNormalizerModel`.
    """

    def __init__(self, model: bytes):
        units, for_nul, self._pool = _fields(model)
        self._units = units.tolist()
        # Of each code, where its replacement is in the pool and how long it is, as the trie has it; 0 for none.
        self._values = np.full(_NUM_CODES, _UNKNOWN, np.int32)
        self._values[0] = for_nul
        self._values[_ESCAPED] = REPLACED

    def replace(self, texts: tf.Tensor) -> tf.Tensor:
        """The texts `[B]` with all characters replaced."""
        return self.replace_with_sources(texts)[0]

    def replace_with_sources(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.RaggedTensor]:
        """The same, and the origin of each byte and of the end, ragged int64 `[B, bytes + 1]`."""
        replaced, sources, splits = _call_on_host(self._replace, texts, [tf.string, tf.int64, tf.int64])
        return replaced, tf.RaggedTensor.from_row_splits(sources, splits, validate=False)

    def _replace(self, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The texts with all characters replaced, the origins of their bytes and ends, and the row splits of these."""
        decoded = list(map(decode_bytes, texts))
        codes = _codes("".join(decoded))  # [N], N characters
        values = self._values_of(codes)
        is_new = values >= REPLACED
        sizes = _sizes(codes)
        text_splits = _splits([len(text) for text in texts])
        starts = _splits(sizes)  # [N + 1], bytes of all texts
        lengths = np.where(is_new, values & MAX_REPLACEMENT_BYTES, sizes)
        pool_starts = (values & ~REPLACED) >> LENGTH_BITS
        begins = np.where(is_new, text_splits[-1] + pool_starts, starts[:-1])  # in the texts, and the pool after them
        ends = _splits(lengths)  # [N + 1], bytes of all results
        place = np.arange(ends[-1]) - np.repeat(ends[:-1], lengths)  # [M], M bytes of all results
        written = np.frombuffer(b"".join([*texts, self._pool]), np.uint8)[np.repeat(begins, lengths) + place].tobytes()
        row_splits = ends[_splits([len(text) for text in decoded])]
        sources = np.repeat(starts[:-1], lengths) + np.where(np.repeat(is_new, lengths), 0, place)
        counts = np.diff(row_splits)
        sources -= np.repeat(text_splits[:-1], counts)
        sources = np.insert(sources, row_splits[1:], np.diff(text_splits))
        replaced = np.empty(len(texts), object)  # of bytes, which TensorFlow reads as strings, also if there are none
        replaced[:] = [written[a:b] for a, b in itertools.pairwise(row_splits.tolist())]
        return replaced, sources, _splits(counts + 1)

    def _values_of(self, codes: np.ndarray) -> np.ndarray:
        values = self._values[codes]
        if (values == _UNKNOWN).any():
            new = np.unique(codes[values == _UNKNOWN])
            self._values[new] = [self._look_up(chr(code).encode()) for code in new.tolist()]
            values = self._values[codes]
        return values

    def _look_up(self, character: bytes) -> int:
        """The value of a character in the trie, in the format of darts-clone; 0 if it has none."""
        units, node = self._units, 0
        for byte in character:
            node ^= _offset(units[node]) ^ byte
            if units[node] & 0x800000FF != byte:
                return 0
        has_value = units[node] >> 8 & 1
        return units[node ^ _offset(units[node])] & 0x7FFFFFFF if has_value else 0


# Tokenizers with the same table share what was looked up.
CharacterReplacer = functools.lru_cache(maxsize=8)(_CharacterReplacer)


def _fields(model: bytes) -> tuple[np.ndarray, int, bytes]:
    """The trie, the value of NUL, which a trie cannot hold, and the pool of strings.

    References:
        tensorflow/text, `fast_bert_normalizer_model.fbs`.
    """
    place = place_of_field(model, NUL_FIELD)
    for_nul = int.from_bytes(model[place : place + 4], "little", signed=True) if place else 0
    return vector_of_field(model, TRIE_FIELD, "<u4"), for_nul, vector_of_field(model, POOL_FIELD, "u1").tobytes()


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)


def _codes(characters: str) -> np.ndarray:
    """The code point of each character."""
    return np.frombuffer(characters.encode("utf-32-le", "surrogatepass"), "<u4")


def _sizes(codes: np.ndarray) -> np.ndarray:
    """The number of bytes of each character in UTF-8, and 1 for a byte that is not UTF-8."""
    sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    return np.where((codes >= _ESCAPED.start) & (codes < _ESCAPED.stop), 1, sizes)


def _splits(lengths: Any) -> np.ndarray:
    """Where each of neighbouring parts begins, and where the last ends, int64."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


# Most words of a text have been met before.
class _WordEncoder:
    """Encodes words with a model of the library `tokenizers`, whose offsets are in bytes.

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
        return Tokens(*_call_on_host(self._encode, words, [tf.int32, tf.int64, tf.int64, tf.int64]))

    def _encode(self, words: np.ndarray) -> tuple[np.ndarray, ...]:
        pieces = [self._pieces_of(word) for word in words]
        ids, starts, ends = ([part[index] for part in pieces] for index in range(3))
        row_splits = np.cumsum([0, *map(len, ids)], dtype=np.int64)
        return _flat(ids, np.int32), row_splits, _flat(starts, np.int64), _flat(ends, np.int64)


class WordPieceModel(_WordEncoder):
    """WordPiece: the longest pieces of words.

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
                ids, unk_token=unknown, max_input_chars_per_word=max_word_length, continuing_subword_prefix=SUFFIX
            )
        )


class SentencePieces(_WordEncoder):
    """SentencePiece: the pieces of words with the largest sum of scores.

    Args:
        vocabulary: the pieces.
        scores: their logarithms of probability; None for a token that is not a piece.
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


def split(texts: tf.Tensor, boundary: str, kept_boundary: str) -> Sequence[tf.Tensor]:
    """Splits texts `[B]` at each match of an RE2 pattern: spans, their starts and ends, and row splits."""
    function = functools.partial(_split, boundary, kept_boundary)
    return _call_on_host(function, texts, [tf.string, tf.int64, tf.int64, tf.int64])


def _split(boundary: str, kept_boundary: str, texts: np.ndarray) -> tuple[np.ndarray, ...]:
    all_texts = _MARK.encode().join(texts)
    characters = decode_bytes(all_texts)
    # Spans, and boundaries or ends of texts, in turn.
    parts = [part for text in characters.split(_MARK) for part in (*parts_of(boundary, text), _MARK)][:-1]
    is_kept = compiled(kept_boundary).fullmatch
    kinds = {part: _END if part == _MARK else _KEPT if is_kept(part) else _DROPPED for part in {*parts[1::2]}}
    kind = np.fromiter(map(kinds.__getitem__, parts[1::2]), np.int8, len(parts) // 2)
    bounds = _splits(np.fromiter(map(len, parts), np.int64, len(parts)))
    if not characters.isascii():
        bounds = _splits(_sizes(_codes(characters)))[bounds]
    starts, ends = bounds[:-1], bounds[1:]
    is_end, chosen = np.zeros(len(parts), bool), ends > starts
    is_end[1::2], chosen[1::2] = kind == _END, kind == _KEPT
    text_of = np.cumsum(is_end)[chosen]
    first = _splits([len(text) + len(_MARK) for text in texts])[text_of]
    starts, ends = starts[chosen], ends[chosen]
    spans = np.empty(len(starts), object)
    spans[:] = [all_texts[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    return spans, starts - first, ends - first, _splits(np.bincount(text_of, minlength=len(texts)))


def _call_on_host(function: Callable[..., Any], texts: tf.Tensor, dtypes: Sequence[Any]) -> list[tf.Tensor]:
    """Calls a Python function of texts, a NumPy array of bytes `[B]`, from a graph; it returns vectors of `dtypes`.

    The function must be pure. TensorFlow keeps it as long as the process lives.
    """
    outputs = tf.numpy_function(function, [texts], dtypes, stateful=False)
    for output in outputs:
        output.set_shape([None])
    return outputs


def _flat(parts: Sequence[tuple[int, ...]], dtype: str | keras.DTypePolicy) -> np.ndarray:
    return np.fromiter(itertools.chain.from_iterable(parts), dtype)
