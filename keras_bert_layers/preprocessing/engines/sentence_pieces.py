"""SentencePiece segmentation of words, in graph: the op of tf.text, and exact sums of scores where it rounds."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal.files.wire_format import field, float_field
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines import tensorflow_text_internals as internals
from keras_bert_layers.preprocessing.tokens.markers import MARKER
from keras_bert_layers.preprocessing.tokens.tokens import Tokens, repaired, rows_of, rows_of_lengths

# google/sentencepiece, `sentencepiece_model.proto`.
_KINDS = {False: 1, True: 2}  # normal, unknown
_UNIGRAM = 1
# Names a piece that no word holds: the marker is at the beginning of a word only.
NEVER = 2 * MARKER + "{}"
# Sums of scores are exact in the 24 bits of a float if a score uses 20 of them, up to sixteen times the usual score.
_SCORE_BITS = 20
_FLOAT_BITS = 24
# Longer words, in bytes, are not given to the op, whose time grows with the square of a run of unknown characters.
_LONG_WORD = 2**12
# What a step of the search for the best path takes at once: places in words, and candidates for pieces (24 bytes each).
_PLACES, _CANDIDATES = 2**4, 2**20
_NO_CHARACTER = "\0"  # in no piece


class SentencePieces:
    """SentencePiece: the pieces of each word with the largest sum of scores.

    The op adds scores in float32, one after the other; the library `tokenizers` adds in float64. They differ where sums
    are equal or nearly so: in "aaaaa", for example. So the op runs on two models: one has the scores, the other has
    them rounded such that its sums are exact and equal sums stay equal. Where both give the same pieces, these are
    right. Other words, and words with many pieces, are encoded again in float64.

    Args:
        vocabulary: the pieces.
        scores: their logarithms of probability; None for a token that is not a piece.
        unknown_id: the id of the piece for characters in no piece.
    """

    def __init__(self, vocabulary: Sequence[str], scores: Sequence[float | None], *, unknown_id: int):
        known = [score for score in scores if score is not None]
        # The score of what no word can hold does not matter, but the smallest score does. The unknown piece is found in
        # text by its name too, as a separate piece at the end of the model.
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
        words = tf.TensorSpec([None], tf.string)
        self.encode_words = tf.function(self._encode, input_signature=[words], autograph=False)

    def _encode(self, words: tf.Tensor) -> Tokens:
        """The pieces of words `[W]` that begin with the marker, with offsets in them."""
        handle, other_handle = map(_handle, self._models)
        is_long = tf.strings.length(words) > _LONG_WORD
        given = tf.where(is_long, "", words)
        exact, rounded = _run(given, handle), _run(given, other_handle)
        doubtful = is_long | self._is_doubtful(exact, rounded)

        def encode_again(some: tf.Tensor) -> Tokens:
            find = functools.partial(internals.find(internals.SENTENCE_PIECE_IDS), handle)
            best = BestPath(find, tf.constant(self._scores), self._longest, self._unknown_id, self._num_pieces)
            return best.encode(some)

        return repaired(exact, words, doubtful, encode_again)

    def _is_doubtful(self, exact: Tokens, rounded: Tokens) -> tf.Tensor:
        """Whether the pieces of a word may not be the best, bool `[W]`."""
        total = tf.concat([[0.0], tf.cumsum(tf.abs(tf.gather(tf.constant(self._scores, tf.float32), exact.ids)))], 0)
        sums = tf.gather(total, exact.row_splits[1:]) - tf.gather(total, exact.row_splits[:-1])
        doubtful = sums >= self._largest_sum / 2  # half of it is left for the rounding of the sum itself
        lengths, others = (tokens.row_splits[1:] - tokens.row_splits[:-1] for tokens in (exact, rounded))
        word = exact.texts_of()
        place = tf.range(tf.size(exact.ids, tf.int64)) - tf.gather(exact.row_splits, word)
        place = tf.minimum(place + tf.gather(rounded.row_splits, word), tf.size(rounded.ids, tf.int64) - 1)
        differs = (tf.gather(rounded.ids, place) != exact.ids) | (exact.ids == self._num_pieces)
        num_different = tf.math.unsorted_segment_sum(tf.cast(differs, tf.int32), word, tf.size(lengths))
        return doubtful | (lengths != others) | (num_different > 0)


class BestPath:
    """Viterbi's algorithm over the pieces of words, for all words at once, as the library `tokenizers` runs it.

    Of equal sums, the one whose last piece is longest is taken. A character that is not a piece is unknown;
    neighbouring unknown ones are one token.

    Args:
        find: from pieces, string `[...]`, to their ids; `unknown_id` for a text that is not a piece.
        scores: float64 `[V + 1]`, the scores of the pieces, that of an unknown character at `unknown_id`.
        longest: the number of characters of the longest piece.
        unknown_id: the id of unknown characters.
        other_id: an id that counts as `unknown_id`, that of the unknown piece written out.
    """

    UNKNOWN_PENALTY = 10.0

    def __init__(self, find: Callable[[Any], Any], scores: tf.Tensor, longest: int, unknown_id: int, other_id: int):
        self._find, self._scores, self._longest = find, scores, longest
        self._unknown_id, self._other_id = unknown_id, other_id

    def encode(self, words: tf.Tensor) -> Tokens:
        """The pieces of words `[W]`, none empty, with offsets in bytes."""
        characters = tf.strings.unicode_split(words, "UTF-8")  # ragged [W, (C)], N characters
        word = rows_of(characters.row_splits)
        first = tf.gather(characters.row_splits, word)
        place = tf.cast(
            tf.range(tf.size(word, tf.int64)) - first, tf.int32
        )  # [N], the characters before it in its word
        ids, lengths = self._last_pieces(characters, word, place)
        ends = _on_path(lengths, place, characters.row_splits)
        sizes = tf.cast(tf.strings.length(characters.values), tf.int64)
        before = tf.gather(tf.cumsum(sizes, exclusive=True), first)
        word, pieces, byte_ends = (tf.boolean_mask(part, ends) for part in (word, ids, tf.cumsum(sizes) - before))
        # Neighbouring unknown characters are one token, which ends with the last of them.
        next_word, next_piece = tf.concat([word[1:], tf.constant([-1], tf.int64)], 0), tf.concat([pieces[1:], [-1]], 0)
        is_last = (word != next_word) | (pieces != self._unknown_id) | (next_piece != self._unknown_id)
        word, byte_ends = tf.boolean_mask(word, is_last), tf.boolean_mask(byte_ends, is_last)
        num_pieces = tf.math.bincount(tf.cast(word, tf.int32), minlength=tf.size(words), dtype=tf.int64)
        row_splits = tf.concat([tf.zeros([1], tf.int64), tf.cumsum(num_pieces)], 0)
        goes_on = tf.concat([tf.constant([-1], tf.int64), word], 0)[:-1] == word
        starts = tf.where(goes_on, tf.concat([tf.zeros([1], tf.int64), byte_ends], 0)[:-1], tf.zeros([1], tf.int64))
        return Tokens(tf.boolean_mask(pieces, is_last), row_splits, starts, byte_ends)

    def _last_pieces(
        self, characters: tf.RaggedTensor, word: tf.Tensor, own_place: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """For each of N characters, int32 `[N]` each: the id and the length of the last piece of the best path to it.

        A step of the loop takes `_PLACES` places of some words, the longest first, so that those that go on are the
        first ones: a matrix of all words would have as many columns as the longest has characters.

        Args:
            characters: of words, ragged string `[W, (C)]`.
            word: int64 `[N]`, the word of each character.
            own_place: int32 `[N]`, its place in the word.
        """
        lengths = tf.cast(characters.row_lengths(), tf.int32)
        longest = tf.minimum(self._longest, tf.reduce_max(lengths))
        by_length = tf.argsort(lengths, direction="DESCENDING", stable=True)
        lengths, firsts = tf.gather(lengths, by_length), tf.gather(tf.cast(characters.row_splits, tf.int32), by_length)
        num_words = tf.maximum(_CANDIDATES // (_PLACES * longest), 1)  # of a step
        begin, part, place, counts = _steps(lengths, num_words)
        texts = tf.concat([characters.values, [_NO_CHARACTER]], 0)
        none = tf.fill([num_words, longest - 1], tf.constant(float("-inf"), tf.float64))
        none = tf.concat([none, tf.zeros([num_words, 1], tf.float64)], 1)  # before a word, there is one path

        def step(index: Any, sums: Any, ids: Any, sizes: Any) -> tuple[Any, ...]:
            count, first = counts[index], num_words * part[index]
            sums = tf.cond(place[index] == 0, lambda: none, lambda: sums)[:count]
            at = place[index] + tf.range(1 - longest, _PLACES)
            is_inside = (at >= 0) & (at < lengths[first : first + count, None])
            at = tf.where(is_inside, firsts[first : first + count, None] + at, tf.size(texts) - 1)
            found = self._pieces_at(tf.strings.reduce_join(tf.gather(texts, at), axis=1), longest)  # [W, P, L]
            is_piece = (found != self._unknown_id) | (tf.range(longest) == longest - 1)
            scores = tf.where(is_piece, tf.gather(self._scores, found), float("-inf"))
            best = []
            for scores_there in tf.unstack(scores, _PLACES, axis=1):
                totals = sums + scores_there
                best.append(tf.argmax(totals, axis=1, output_type=tf.int32))  # the first of equals
                sums = tf.concat([sums[:, 1:], tf.reduce_max(totals, axis=1)[:, None]], 1)
            chosen = tf.stack(best, 1)
            ids = ids.write(index, tf.reshape(tf.gather(found, chosen, axis=2, batch_dims=2), [-1]))
            return index + 1, sums, ids, sizes.write(index, tf.reshape(longest - chosen, [-1]))

        arrays = [tf.TensorArray(tf.int32, tf.size(part), element_shape=[None], infer_shape=False) for _ in range(2)]
        state = (tf.constant(0), none, *arrays)
        shapes = tuple(tf.TensorShape(shape) for shape in ([], [None, None], None, None))
        *_, ids, sizes = tf.while_loop(lambda index, *_: index < tf.size(part), step, state, shape_invariants=shapes)
        # Where the loop has put each character.
        rank = tf.gather(tf.math.invert_permutation(by_length), word)
        own_step = tf.gather(begin, rank // num_words) + own_place // _PLACES
        index = tf.gather(tf.cumsum(_PLACES * counts, exclusive=True), own_step)
        index += rank % num_words * _PLACES + own_place % _PLACES
        ids, sizes = (tf.gather(array.concat(), index) for array in (ids, sizes))
        return tf.where(ids == self._other_id, self._unknown_id, ids), sizes

    def _pieces_at(self, texts: tf.Tensor, longest: tf.Tensor) -> tf.Tensor:
        """The ids of all texts of up to L characters that end at P places, the longest first, int32 `[W, P, L]`.

        Args:
            texts: string `[W]`, the characters at the P places, and L - 1 characters before them.
            longest: L.
        """
        begins = tf.range(_PLACES)[:, None] + tf.range(longest)
        sizes = tf.broadcast_to(longest - tf.range(longest), tf.shape(begins))
        begins, sizes = (tf.reshape(part, [1, -1]) for part in (begins, sizes))
        parts = tf.strings.substr(texts[:, None], begins, sizes, unit="UTF8_CHAR")
        return tf.reshape(self._find(tf.reshape(parts, [-1])), [-1, _PLACES, longest])


def _steps(lengths: tf.Tensor, num_words: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The steps over words with these lengths, int32 `[W]`, the longest first; a part is `num_words` of them.

    Returns:
        The first step of each part; and of each of S steps, int32 `[S]`, its part, its first place, and how many words
        of the part have a character there.
    """
    longest = tf.gather(lengths, tf.range(0, tf.size(lengths), num_words))  # of each part, [parts]
    num_steps = -(-longest // _PLACES)
    begin, part = tf.cumsum(num_steps, exclusive=True), tf.cast(rows_of_lengths(num_steps), tf.int32)
    place = _PLACES * (tf.range(tf.size(part)) - tf.gather(begin, part))
    reached = tf.size(lengths) - tf.searchsorted(lengths[::-1], place, side="right")
    return begin, part, place, tf.minimum(reached - num_words * part, num_words)


def _on_path(lengths: tf.Tensor, place: tf.Tensor, row_splits: tf.Tensor) -> tf.Tensor:
    """Whether a piece of the best path of a word ends at each character, bool `[N]`.

    The paths are followed from the ends of the words, first by one piece, then by two, by four, and so on.

    Args:
        lengths: int32 `[N]`, the number of characters of the last piece of the best path to each character.
        place: int32 `[N]`, the place of each character in its word.
        row_splits: int64 `[W + 1]`, where words begin, none of them empty.
    """
    count = tf.size(lengths)
    before = tf.where(lengths > place, count, tf.range(count) - lengths)  # `count` stands for no character
    before = tf.concat([before, [count]], 0)
    is_end = tf.scatter_nd(row_splits[1:, None] - 1, tf.ones_like(row_splits[1:]), [tf.size(before, tf.int64)]) > 0

    def step(is_end: Any, before: Any) -> tuple[Any, Any]:
        reached = tf.boolean_mask(before, is_end)
        reached = tf.scatter_nd(reached[:, None], tf.ones_like(reached), tf.shape(before)) > 0
        return is_end | reached, tf.gather(before, before)

    return tf.while_loop(lambda _, before: tf.reduce_any(before != count), step, (is_end, before))[0][:-1]


def piece_names(vocabulary: Sequence[str], scores: Sequence[float | None]) -> list[str]:
    """The pieces of a model, those that no word can hold under other names."""
    return [
        NEVER.format(index) if score is None or not piece or "\0" in piece else piece
        for index, (piece, score) in enumerate(zip(vocabulary, scores, strict=True))
    ]


def _run(words: tf.Tensor, handle: tf.Tensor) -> Tokens:
    tokenize = internals.find(internals.SENTENCE_PIECES)
    ids, splits, starts, ends = tokenize(handle, words, 0, 1.0, False, False, False, tf.int32)
    return Tokens(ids, splits, tf.cast(starts, tf.int64), tf.cast(ends, tf.int64))


def _handle(model: bytes) -> tf.Tensor:
    """The op's model. All ops with the same model share one, whatever graph they are in."""
    make = internals.find(internals.SENTENCE_PIECE_MODEL)
    return make(model=model, shared_name=hashlib.sha256(model).hexdigest())


def _model(names: Sequence[str], unknown_id: int, scores: np.ndarray) -> bytes:
    """A `ModelProto` with pieces, of the kind "unigram", that changes no character of its input."""
    pieces = (
        field(1, field(1, name.encode()) + float_field(2, score) + field(3, _KINDS[index == unknown_id]))
        for index, (name, score) in enumerate(zip(names, scores, strict=True))
    )
    trainer = field(3, _UNIGRAM)
    # A map without keys; without a map, the op would log that there is none.
    units = np.full(512, 1 << 31, "<u4")
    units[0] = 256 << 10
    character_map = units.nbytes.to_bytes(4, "little") + units.tobytes() + b"\0"
    normalizer = field(1, b"identity") + field(2, character_map) + field(3, 0) + field(4, 0) + field(5, 0)
    return b"".join([*pieces, field(2, trainer), field(3, normalizer)])
