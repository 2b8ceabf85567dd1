"""Pieces of words, by the SentencePiece op of tf.text, and exactly where the op rounds."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.wire_format import field, float_field
from keras_bert_layers.preprocessing import _tf_text_internals
from keras_bert_layers.preprocessing._best_path import BestPath
from keras_bert_layers.preprocessing._character_normalizer import MARKER
from keras_bert_layers.preprocessing._tokens import Tokens, repaired

# google/sentencepiece, `sentencepiece_model.proto`.
_KINDS = {False: 1, True: 2}  # normal, unknown
_UNIGRAM = 1
# Names a piece that no word holds: the marker is at the beginning of a word only.
NEVER = 2 * MARKER + "{}"
# Sums of scores are exact in the 24 bits of a float if a score uses 20 of them, up to sixteen times the usual score.
_SCORE_BITS = 20
_FLOAT_BITS = 24


class SentencePieces:
    """The best pieces of each word: those with the largest sum of scores.

    The op adds scores in float32, one after the other; the library `tokenizers` adds in float64. They differ where sums
    are equal or nearly so: in "aaaaa", for example. So the op runs on two models: one has the scores, the other has
    them rounded such that its sums are exact and equal sums stay equal. Where both give the same pieces, these are
    right. Other words, and words with many pieces, are encoded again in float64.

    Args:
        vocabulary: the pieces.
        scores: their logarithms of probability; None for a token that is no piece.
        unknown_id: the id of the piece for characters in no piece.
    """

    def __init__(self, vocabulary: Sequence[str], scores: Sequence[float | None], *, unknown_id: int):
        known = [score for score in scores if score is not None]
        # What no word can hold does not matter, but the smallest score does. The unknown piece is found in text by its
        # name too, as a piece of its own at the end of the model.
        values = np.array([*(0.0 if score is None else score for score in scores), scores[unknown_id] or 0.0])
        names = piece_names(vocabulary, scores)
        names[unknown_id] = NEVER.format(unknown_id)
        names.append(vocabulary[unknown_id])
        self._unknown_id = unknown_id
        self._num_pieces = len(vocabulary)
        usual = max(float(np.median(np.abs(known))), 2.0**-20)
        step = 2.0 ** (np.ceil(np.log2(usual)) - _SCORE_BITS)
        self._largest_sum = step * 2**_FLOAT_BITS
        self._models = [_model(names, unknown_id, each) for each in (values, np.round(values / step) * step)]
        self._scores = values
        self._scores[unknown_id] = min(known) - BestPath.UNKNOWN_PENALTY
        self._longest = max(len(name) for name in names)

        # One function, so that a graph holds the models once, however often it encodes words.
        self._encode_words = tf.function(
            self._encode, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
        )

    def encode_words(self, words: tf.Tensor) -> Tokens:
        """The pieces of words `[W]` that begin with the marker, with offsets in them."""
        return self._encode_words(words)

    def _encode(self, words: tf.Tensor) -> Tokens:
        handle, other_handle = map(_handle, self._models)
        exact, rounded = _run(words, handle), _run(words, other_handle)
        doubtful = self._is_doubtful(exact, rounded)

        def encode_again(some: tf.Tensor) -> Tokens:
            find = functools.partial(_tf_text_internals.find(_tf_text_internals.SENTENCE_PIECE_IDS), handle)
            best = BestPath(find, tf.constant(self._scores), self._longest, self._unknown_id, self._num_pieces)
            return best.encode(some)

        return repaired(exact, words, doubtful, encode_again)

    def _is_doubtful(self, exact: Tokens, rounded: Tokens) -> tf.Tensor:
        """Whether the pieces of a word may not be the best, bool `[W]`."""
        total = tf.concat([[0.0], tf.cumsum(tf.abs(tf.gather(tf.constant(self._scores, tf.float32), exact.ids)))], 0)
        sums = tf.gather(total, exact.row_splits[1:]) - tf.gather(total, exact.row_splits[:-1])
        doubtful = sums >= self._largest_sum / 2  # of the sum's own rounding, there is half to spare
        lengths, others = (tokens.row_splits[1:] - tokens.row_splits[:-1] for tokens in (exact, rounded))
        word = exact.texts_of()
        place = tf.range(tf.size(exact.ids, tf.int64)) - tf.gather(exact.row_splits, word)
        place = tf.minimum(place + tf.gather(rounded.row_splits, word), tf.size(rounded.ids, tf.int64) - 1)
        differs = (tf.gather(rounded.ids, place) != exact.ids) | (exact.ids == self._num_pieces)
        num_different = tf.math.unsorted_segment_sum(tf.cast(differs, tf.int32), word, tf.size(lengths))
        return doubtful | (lengths != others) | (num_different > 0)


def piece_names(vocabulary: Sequence[str], scores: Sequence[float | None]) -> list[str]:
    """The pieces of a model, those that no word can hold under other names."""
    return [
        NEVER.format(index) if score is None or not piece or "\0" in piece else piece
        for index, (piece, score) in enumerate(zip(vocabulary, scores, strict=True))
    ]


def _run(words: tf.Tensor, handle: tf.Tensor) -> Tokens:
    tokenize = _tf_text_internals.find(_tf_text_internals.SENTENCE_PIECES)
    ids, splits, starts, ends = tokenize(handle, words, 0, 1.0, False, False, False, tf.int32)
    return Tokens(ids, splits, tf.cast(starts, tf.int64), tf.cast(ends, tf.int64))


def _handle(model: bytes) -> tf.Tensor:
    """The op's model. All ops with the same model share one, whatever graph they are in."""
    make = _tf_text_internals.find(_tf_text_internals.SENTENCE_PIECE_MODEL)
    return make(model=model, shared_name=hashlib.sha256(model).hexdigest())


def _model(names: Sequence[str], unknown_id: int, scores: np.ndarray) -> bytes:
    """A `ModelProto` with pieces, of the kind "unigram", that changes no character of its input."""
    pieces = (
        field(1, field(1, name.encode()) + float_field(2, score) + field(3, _KINDS[index == unknown_id]))
        for index, (name, score) in enumerate(zip(names, scores, strict=True))
    )
    trainer = field(3, _UNIGRAM)
    # A map that has no key; without one, the op would log that there is none.
    units = np.full(512, 1 << 31, "<u4")
    units[0] = 256 << 10
    character_map = units.nbytes.to_bytes(4, "little") + units.tobytes() + b"\0"
    normalizer = field(1, b"identity") + field(2, character_map) + field(3, 0) + field(4, 0) + field(5, 0)
    return b"".join([*pieces, field(2, trainer), field(3, normalizer)])
