"""`Composer`: Unicode's normal form C (NFC) of texts in TensorFlow graph, and where its characters come from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.tokens.tokens import num_bytes, rows_of, rows_of_lengths

# Korean syllables are composed by arithmetic: The Unicode Standard, section 3.12.
_SYLLABLES, _LEADS, _VOWELS, _TAILS = 0xAC00, 0x1100, 0x1161, 0x11A7
_NUM_LEADS, _NUM_VOWELS, _NUM_TAILS = 19, 21, 28
# More marks of one class are never composed with one character.
_MOST_MARKS = 4
_ROW = 2**21  # above all code points


class Composed(NamedTuple):
    """The B composed texts, of N characters, and where these are from.

    Attributes:
        texts: string `[B]`.
        starts: int64 `[N]`, the byte of the given text at which the character begins that each is from.
        ends: int64 `[N]`.
    """

    texts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor

    def in_original(self, text_of: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Maps offsets of tokens, int64 `[T]`, in the composed texts to offsets in the given texts.

        Args:
            text_of: the text of each token, int64 `[T]`.
            starts: bytes in the composed text.
            ends: the same, above `starts`.
        """
        codes = tf.strings.unicode_decode(self.texts, "UTF-8").values
        bytes_of = rows_of_lengths(num_bytes(codes))  # the character of each byte
        lengths = tf.cast(tf.strings.length(self.texts), tf.int64)
        first = tf.gather(tf.cumsum(lengths, exclusive=True), text_of)
        before, last = (tf.gather(bytes_of, first + at) for at in (starts, ends - 1))
        return tf.gather(self.starts, before), tf.gather(self.ends, last)


class Composer:
    """Composes characters: a letter and its marks are the one character that Unicode has for them.

    The tables are those of the library `tokenizers`, and so is the character that a composed one is from: the first of
    those that it is made of.

    References:
        Unicode Standard Annex #15, https://unicode.org/reports/tr15; `tokenizer/normalizer.rs` in
        huggingface/tokenizers, and the crate unicode-normalization-alignments.
    """

    def __init__(self) -> None:
        data = tables.composition()
        parts = {code: list(map(ord, text)) for code, text in data.decomposed.items()}
        size = max(parts) + 2
        lengths = np.ones(size, np.int32)
        lengths[list(parts)] = [*map(len, parts.values())]
        self._first = tf.constant(np.concatenate([[0], np.cumsum(lengths)[:-1]]), tf.int32)
        self._lengths = tf.constant(lengths)
        self._parts = tf.constant([part for code in range(size) for part in parts.get(code, [code])], tf.int32)
        classes = np.zeros(max(data.classes) + 2, np.int32)
        classes[list(data.classes)] = [*data.classes.values()]
        self._classes = tf.constant(classes)
        pairs = sorted((ord(first) * _ROW + ord(second), ord(whole)) for first, second, whole in data.composed)
        self._keys, self._wholes = (tf.constant(column, tf.int64) for column in zip(*pairs, strict=True))
        seconds = {ord(second) for _, second, _ in data.composed}
        self._is_second = _marked(seconds)
        wholes = {ord(whole) for _, _, whole in data.composed}
        jamo = {*range(_VOWELS, _VOWELS + _NUM_VOWELS), *range(_TAILS + 1, _TAILS + _NUM_TAILS)}
        self._may_change = _marked((parts.keys() - wholes) | seconds | jamo)
        # A second character that is no mark follows the last part of what it is composed with.
        links = {(parts.get(ord(first), [ord(first)])[-1], ord(second)) for first, second, _ in data.composed}
        self._links = tf.constant(sorted(a * _ROW + b for a, b in links if not data.classes.get(b)), tf.int64)

    def changes(self, texts: tf.Tensor) -> tf.Tensor:
        """Whether texts `[B]` may be other texts when they are composed, bool `[B]`."""
        codes = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        classes = _looked_up(self._classes, codes.values)
        is_unordered = (classes > 0) & (classes < tf.concat([[0], classes[:-1]], 0)[: tf.size(classes)])
        found = tf.cast(_looked_up(self._may_change, codes.values) | is_unordered, tf.int32)
        return tf.math.unsorted_segment_max(found, rows_of(codes.row_splits), codes.nrows()) > 0

    def compose(self, texts: tf.Tensor) -> Composed:
        """The composed texts; bytes that are not UTF-8 are skipped."""
        nothing = tf.zeros([0], tf.int64)
        return tf.cond(tf.size(texts) > 0, lambda: self._compose(texts), lambda: Composed(texts, nothing, nothing))

    def _compose(self, texts: tf.Tensor) -> Composed:
        ragged, offsets = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="ignore")
        codes, row, change = self._decomposed(ragged.values, rows_of(ragged.row_splits))
        begins_row = tf.concat([tf.ones_like(row[:1], tf.bool), row[1:] != row[:-1]], 0)
        classes = _looked_up(self._classes, codes)
        segment = tf.cumsum(tf.cast((classes == 0) | begins_row, tf.int64))
        order = tf.argsort(segment * 256 + tf.cast(classes, tf.int64), stable=True)
        codes, change, classes = (tf.gather(part, order) for part in (codes, change, classes))
        codes, change, is_kept = self._merged(codes, change, classes, begins_row)
        codes, change, row = (tf.boolean_mask(part, is_kept) for part in (codes, change, row))
        num_read = tf.where(change > 0, tf.zeros_like(change), 1 - change)
        num_rows = ragged.nrows()
        splits = tf.searchsorted(row, tf.range(num_rows + 1))
        total = tf.concat([[0], tf.cumsum(num_read)], 0)
        place = total[:-1] - tf.gather(total, tf.gather(splits, row))  # of a character in its text, int64
        is_first = (change > 0) & (place == 0)
        source = tf.gather(ragged.row_splits, row) + tf.maximum(place - tf.cast(change > 0, tf.int64), 0)
        starts = tf.where(is_first, tf.zeros_like(source), tf.gather(offsets.values, source))
        sizes = num_bytes(tf.gather(ragged.values, source))
        composed = tf.strings.unicode_encode(tf.RaggedTensor.from_row_splits(codes, splits, validate=False), "UTF-8")
        return Composed(composed, starts, tf.where(is_first, tf.zeros_like(source), starts + sizes))

    def _decomposed(self, codes: tf.Tensor, row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The parts of characters, the text of each, and how many characters it adds, 0 or 1."""
        syllable = codes - _SYLLABLES
        is_syllable = (syllable >= 0) & (syllable < _NUM_LEADS * _NUM_VOWELS * _NUM_TAILS)
        lengths = tf.where(
            is_syllable, 2 + tf.cast(syllable % _NUM_TAILS > 0, tf.int32), _looked_up(self._lengths, codes)
        )
        index = tf.cast(rows_of_lengths(lengths), tf.int32)
        part = tf.range(tf.size(index)) - tf.gather(tf.cumsum(lengths, exclusive=True), index)
        codes, syllable, is_syllable = (tf.gather(each, index) for each in (codes, syllable, is_syllable))
        is_known = codes < tf.size(self._first)
        known, place = (tf.where(is_known, each, 0) for each in (codes, part))
        found = tf.gather(self._parts, tf.gather(self._first, known) + place)
        jamo = [
            _LEADS + syllable // (_NUM_VOWELS * _NUM_TAILS),
            _VOWELS + syllable // _NUM_TAILS % _NUM_VOWELS,
            _TAILS + syllable % _NUM_TAILS,
        ]
        of_syllable = tf.where(part == 0, jamo[0], tf.where(part == 1, jamo[1], jamo[2]))
        parts = tf.where(is_syllable, of_syllable, tf.where(is_known, found, codes))
        return parts, tf.gather(row, index), tf.cast(part > 0, tf.int64)

    def _merged(
        self, codes: tf.Tensor, change: tf.Tensor, classes: tf.Tensor, begins_row: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Composes characters in their order: their codes and changes, and whether each stays a character."""
        begins_group, may_be = self._candidates(codes, classes, begins_row)
        places, group = tf.where(may_be)[:, 0], tf.cumsum(tf.cast(begins_group, tf.int64)) - 1
        firsts = tf.where(begins_group)[:, 0]
        counted = tf.concat([[0], tf.cumsum(tf.cast(may_be, tf.int64))], 0)
        turns = tf.range(tf.size(places, tf.int64)) - tf.gather(counted, tf.gather(firsts, tf.gather(group, places)))
        is_letter = tf.gather(classes, firsts) == 0
        letter, letter_at = tf.where(is_letter, tf.gather(codes, firsts), -1), firsts
        state = (codes, change, tf.ones_like(may_be), letter, letter_at, tf.zeros_like(letter))

        def turn(number: tf.Tensor, *state: tf.Tensor) -> Any:
            codes, change, is_kept, *letters = state
            at = tf.boolean_mask(places, turns == number)
            of, kind, code = (tf.gather(part, at) for part in (group, classes, codes))
            letter, letter_at, failed = (tf.gather(part, of) for part in letters)
            is_found, whole = self._whole(letter, code)
            is_found &= (kind == 0) | (kind != failed)
            begins = ~is_found & (kind == 0)  # a letter of its own
            new = (
                tf.where(is_found, whole, tf.where(begins, code, letter)),
                tf.where(begins, at, letter_at),
                tf.where(is_found, failed, kind),
            )
            gone, into = tf.boolean_mask(at, is_found), tf.boolean_mask(letter_at, is_found)
            codes = tf.tensor_scatter_nd_update(codes, into[:, None], tf.boolean_mask(whole, is_found))
            change = tf.tensor_scatter_nd_add(change, into[:, None], tf.gather(change, gone) - 1)
            is_kept = tf.tensor_scatter_nd_update(is_kept, gone[:, None], tf.zeros_like(gone, tf.bool))
            changed = zip(letters, (of[:, None],) * 3, new, strict=True)
            return number + 1, codes, change, is_kept, *(tf.tensor_scatter_nd_update(*each) for each in changed)

        most = tf.reduce_max(tf.concat([[-1], turns], 0))
        first = tf.constant(0, tf.int64)
        return tf.while_loop(lambda number, *_: number <= most, turn, (first, *state))[1:4]

    def _candidates(self, codes: tf.Tensor, classes: tf.Tensor, begins_row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Whether each character begins a group, and whether it may be composed with the letter of its group."""
        before, class_before = (tf.concat([[0], part], 0)[:-1] for part in (codes, classes))
        keys = tf.cast(before, tf.int64) * _ROW + tf.cast(codes, tf.int64)
        is_jamo = _is_in(before, _LEADS, _NUM_LEADS) & _is_in(codes, _VOWELS, _NUM_VOWELS)
        is_jamo |= _is_in(before, _VOWELS, _NUM_VOWELS) & _is_in(codes, _TAILS + 1, _NUM_TAILS - 1)
        is_linked = ~begins_row & (classes == 0) & (class_before == 0) & (is_jamo | _find(self._links, keys)[0])
        begins_group = begins_row | ((classes == 0) & ~is_linked)
        # Of the marks of a class, the first may be composed, and the next ones only where those before it may.
        begins_class = begins_row | (classes == 0) | (classes != class_before)
        is_second = (classes > 0) & _looked_up(self._is_second, codes)
        found = may_be = is_second & begins_class
        for _ in range(_MOST_MARKS - 1):
            found = is_second & ~begins_class & tf.concat([[False], found], 0)[:-1]
            may_be |= found
        may_be |= is_linked
        return begins_group, may_be

    def _whole(self, first: tf.Tensor, second: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Whether two characters are composed, and to which one."""
        is_found, index = _find(self._keys, tf.cast(first, tf.int64) * _ROW + tf.cast(second, tf.int64))
        whole = tf.cast(tf.gather(self._wholes, index), tf.int32)
        is_open = _is_in(first, _LEADS, _NUM_LEADS) & _is_in(second, _VOWELS, _NUM_VOWELS)
        open_one = _SYLLABLES + ((first - _LEADS) * _NUM_VOWELS + second - _VOWELS) * _NUM_TAILS
        is_closed = _is_in(first, _SYLLABLES, _NUM_LEADS * _NUM_VOWELS * _NUM_TAILS)
        is_closed &= ((first - _SYLLABLES) % _NUM_TAILS == 0) & _is_in(second, _TAILS + 1, _NUM_TAILS - 1)
        whole = tf.where(is_open, open_one, tf.where(is_closed, first + second - _TAILS, whole))
        return is_found | is_open | is_closed, whole


def _is_in(codes: tf.Tensor, first: int, count: int) -> tf.Tensor:
    return (codes >= first) & (codes < first + count)


def _find(keys: tf.Tensor, wanted: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Whether there is such a key, among sorted ones, and its index."""
    index = tf.minimum(tf.searchsorted(keys, wanted), tf.size(keys) - 1)
    return tf.gather(keys, index) == wanted, index


def _looked_up(table: tf.Tensor, codes: tf.Tensor) -> tf.Tensor:
    """The values of a table, whose last one is that of all code points after it."""
    return tf.gather(table, tf.minimum(codes, tf.size(table) - 1))


def _marked(codes: set[int]) -> tf.Tensor:
    table = np.zeros(max(codes) + 2, bool)
    table[list(codes)] = True
    return tf.constant(table)
