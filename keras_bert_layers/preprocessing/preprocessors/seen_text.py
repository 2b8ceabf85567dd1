"""`SeenText`: the characters and words of texts as people see them, and which of them tokens are made of, in graph.

Axes: B texts, N characters, T tokens, U units (characters as people see them).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.tokenizer import Tokenizer
from keras_bert_layers.preprocessing.tokens.markers import WHITESPACE, contains
from keras_bert_layers.preprocessing.tokens.tokens import num_bytes, rows_of

# Kinds of characters, as bits.
SPACE, APART, JOINS, PREPENDS, CONTROL, JOINER, FLAG, PICTURE, SYLLABLE, SYLLABLE_PART = (1 << bit for bit in range(10))
_RANGE = re.compile(r"\\x\{(\w+)\}(?:-\\x\{(\w+)\})?")
# The zero width joiner; regional indicators, of which two are a flag; what a joiner joins to the picture before it.
_JOINER, _FLAGS, _PICTURES = 0x200D, (0x1F1E6, 0x1F1FF), ((0x2190, 0x2BFF), (0x1F000, 0x1FAFF))
# The letters of Korean syllables that are written apart, and of these the vowels and finals.
_SYLLABLES, _SYLLABLE_PARTS = (0x1100, 0x11FF), (0x1160, 0x11FF)
_NOT_ASCII = r"[^\x00-\x7f]"


class WordPieces(NamedTuple):
    """The P pieces of the words of B texts: a token, or the part of one that belongs to a word.

    Attributes:
        tokens: int32 `[P]`, ascending, the index of the token that each piece is, or is a part of.
        starts: int32 `[P]`, the byte of the text at which people see a piece start.
        ends: int32 `[P]`, the byte after its last.
        begins: bool `[P]`, whether a piece is the first of its word.
    """

    tokens: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    begins: tf.Tensor


class SeenTokens(NamedTuple):
    """The T tokens of B texts, the bytes of their text that people see, and their words.

    Attributes:
        ids: ragged int32 `[B, (T)]`.
        starts: int32 `[T]`, the byte at which a token's first character starts, without whitespace before it.
        ends: int32 `[T]`, the byte after its last character, with the marks on it, without whitespace after it.
        begins: bool `[T]`, whether a token is the first of a word.
        is_seen: bool `[T]`, False for a token of whitespace alone, which is part of no word. The space before a word
            that is a token of its own is a part of the word, of length 0.
        text: the texts, with the words that tokens are of; None if no token is of several words.
        words: the number of the first word of each token, int64 `[T]`.
        last_words: that of the last.
    """

    ids: tf.RaggedTensor
    starts: tf.Tensor
    ends: tf.Tensor
    begins: tf.Tensor
    is_seen: tf.Tensor
    text: SeenText | None = None
    words: tf.Tensor | None = None
    last_words: tf.Tensor | None = None

    def pieces(self) -> WordPieces:
        """The words, piece by piece."""
        if self.text is None:
            return WordPieces(tf.range(tf.size(self.begins)), self.starts, self.ends, self.begins)
        kept = tf.where(self.is_seen)[:, 0]
        first, last = (tf.gather(part, kept) for part in (self.words, self.last_words))
        words = tf.ragged.range(first, last + 1)
        place = rows_of(words.row_splits)
        is_first, is_last = (words.values == tf.gather(side, place) for side in (first, last))
        tokens = tf.gather(kept, place)
        starts, ends = self.text.word_bounds(words.values, tf.gather(rows_of(self.ids.row_splits), tokens))
        return WordPieces(
            tf.cast(tokens, tf.int32),
            tf.where(is_first, tf.gather(self.starts, tokens), starts),
            tf.where(is_last, tf.gather(self.ends, tokens), ends),
            ~is_first | tf.gather(self.begins, tokens),
        )


class Places(NamedTuple):
    """Where people see T tokens.

    Attributes:
        starts: int32 `[T]`. A token of whitespace alone starts with the next character, and ends there.
        ends: int32 `[T]`.
        is_seen: bool `[T]`, whether there is more than whitespace.
        words: the number of the word of the first character, int64 `[T]`, counted over all texts.
        last_words: that of the last character.
    """

    starts: tf.Tensor
    ends: tf.Tensor
    is_seen: tf.Tensor
    words: tf.Tensor
    last_words: tf.Tensor


class SeenText:
    """Characters and words of texts.

    A character is what people see as one: with its marks, an emoji with what is joined to it, a flag. Words are those
    of BERT's tokenizers: they end at whitespace, and a punctuation mark or a Chinese character is a word of its own.
    Control characters begin no word.

    Args:
        texts: strings `[B]`; bytes that are not UTF-8 are skipped.

    References:
        Unicode Standard Annex #29, https://unicode.org/reports/tr29, section 3.1; Devlin et al. 2018, `BasicTokenizer`
        in google-research/bert `tokenization.py`.
    """

    def __init__(self, texts: tf.Tensor):
        ragged, offsets = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="ignore")
        codes, row = ragged.values, rows_of(ragged.row_splits)
        self._text_starts = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64), exclusive=True)  # [B]
        # Bytes of all texts together, int64 [N].
        self._starts = tf.gather(self._text_starts, row) + offsets.values
        self._ends = self._starts + num_bytes(codes)
        firsts, bits = runs_of_kinds()
        kinds = tf.gather(tf.constant(bits), tf.searchsorted(tf.constant(firsts), codes, side="right") - 1)  # [N]
        begins_text = row != _before(row, -1)
        joins = _joins(kinds, begins_text)
        self._visible = tf.where(kinds & SPACE == 0)[:, 0]
        self._unit = tf.cumsum(tf.cast(~joins, tf.int64)) - 1  # [N]
        self._unit_firsts = tf.where(~joins)[:, 0]  # [U]
        self._words = self._words_of(kinds, begins_text, joins)

    def _words_of(self, kinds: tf.Tensor, begins_text: tf.Tensor, joins: tf.Tensor) -> tf.Tensor:
        """The number of the word of each character, int64 `[N]`; of whitespace, that of the word before."""
        after_space = begins_text | (_before(kinds, SPACE) & SPACE > 0)
        # Control characters belong to what is before them.
        first = tf.where(~joins & ((kinds & CONTROL == 0) | after_space))[:, 0]
        kind, is_first = tf.gather(kinds, first), tf.gather(after_space, first)
        begins = (kind & SPACE == 0) & (is_first | ((kind | _before(kind, 0)) & APART > 0))
        begins = tf.scatter_nd(first[:, None], tf.cast(begins, tf.int64), tf.shape(kinds, tf.int64))
        self._word_firsts = tf.where(begins > 0)[:, 0]
        return tf.cumsum(begins) - 1

    def places(self, text_of: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> Places:
        """Where people see tokens.

        Args:
            text_of: the text of each token, int64 `[T]`.
            starts: the byte of its text at which it starts, int32 `[T]`.
            ends: the byte after its last.
        """
        first_byte = tf.gather(self._text_starts, text_of)
        first, last = (
            tf.searchsorted(self._starts, first_byte + tf.cast(at, tf.int64), side="right", out_type=tf.int64) - 1
            for at in (starts, tf.maximum(ends - 1, 0))
        )
        following = tf.searchsorted(self._visible, first, out_type=tf.int64)
        # Here and below, a character after the last one stands for "none".
        following = tf.gather(_then(self._visible, tf.size(self._starts, tf.int64)), following)
        before = self._visible_before(last)
        is_seen = (following <= before) & (starts < ends)
        start = self._start_of(following)
        end = tf.where(is_seen, self._end_of(before), start)
        words, last_words = (tf.gather(_then(self._words, 0), tf.maximum(at, 0)) for at in (following, before))
        last_words = tf.where(is_seen, last_words, words)
        start, end = (tf.cast(at - first_byte, tf.int32) for at in (start, end))
        return Places(start, end, is_seen, words, last_words)

    def word_bounds(self, words: tf.Tensor, text_of: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The first byte of words in their text and the byte after their last, int32 each."""
        firsts = _then(self._word_firsts, tf.size(self._starts, tf.int64))
        last = self._visible_before(tf.gather(firsts, words + 1) - 1)
        first_byte = tf.gather(self._text_starts, text_of)
        bounds = (self._start_of(tf.gather(firsts, words)), self._end_of(last))
        return tuple(tf.cast(at - first_byte, tf.int32) for at in bounds)

    def _visible_before(self, at: tf.Tensor) -> tf.Tensor:
        """The last character up to each that is no whitespace, or -1."""
        place = tf.searchsorted(self._visible, at, side="right", out_type=tf.int64)
        return tf.gather(tf.concat([[-1], self._visible], 0), place)

    def _start_of(self, at: tf.Tensor) -> tf.Tensor:
        """The first byte, of all texts, of what people see as one with each character."""
        first = tf.gather(_then(self._unit_firsts, 0), tf.gather(_then(self._unit, 0), at))
        return tf.gather(_then(self._starts, 0), first)

    def _end_of(self, at: tf.Tensor) -> tf.Tensor:
        """The byte after the last, of all texts, of what people see as one with each character."""
        unit = tf.gather(_then(self._unit, 0), tf.maximum(at, 0))
        last = tf.gather(_then(self._unit_firsts, tf.size(self._starts, tf.int64)), unit + 1) - 1
        return tf.gather(_then(self._ends, 0), tf.maximum(last, 0))


def seen_tokens(tokenizer: Tokenizer, texts: tf.Tensor) -> SeenTokens:
    """The tokens of texts, the bytes that people see, and their words.

    The words of a `BertTokenizer` are those that it makes before it uses its vocabulary. Other tokenizers have tokens
    of several words, such as `."`, which are a piece of each; `word_boundaries="spaces"` ends words at spaces alone.

    Args:
        tokenizer: a tokenizer.
        texts: strings `[B]`.
    """
    ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
    starts, ends = starts.flat_values, ends.flat_values
    text_of = rows_of(ids.row_splits)
    continues = tf.gather(tf.constant(np.array(tokenizer.continues_word())), ids.flat_values)
    begins = ~continues | (text_of != _before(text_of, -1))
    if tokenizer.word_boundaries == "punctuation":
        is_space = ids.flat_values == tokenizer.space_id
        return _with_words(SeenTokens(ids, starts, ends, begins, tf.ones_like(begins)), is_space, SeenText(texts))
    *seen, is_seen = seen_spans(tokenizer, texts, text_of, starts, ends)
    starts, ends = (tf.where(is_seen, side, own) for side, own in zip(seen, (starts, ends), strict=True))
    return SeenTokens(ids, starts, ends, begins, tf.ones_like(begins))


def seen_spans(
    tokenizer: Tokenizer, texts: tf.Tensor, rows: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Spans of tokens as people see them: from the first character that is no whitespace to the last, with its marks.

    Args:
        tokenizer: what the tokens are of.
        texts: strings `[B]`.
        rows: the text of each span, integers `[N]`.
        starts: the byte at which it starts, int32 `[N]`.
        ends: the byte after its last.

    Returns:
        Starts, ends, and whether there is more than whitespace, bool `[N]`.
    """

    def in_sight() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return SeenText(texts).places(tf.cast(rows, tf.int64), starts, ends)[:3]

    if tokenizer.word_boundaries != "vocabulary":
        return in_sight()
    # No token of such a vocabulary has whitespace, and few texts have characters of several code points.
    is_plain = tf.reduce_all(~contains(texts, _NOT_ASCII))
    return tf.cond(is_plain, lambda: (starts, ends, starts < ends), in_sight)


def _with_words(tokens: SeenTokens, is_space: tf.Tensor, text: SeenText) -> SeenTokens:
    """Tokens with the words of the text.

    Args:
        tokens: tokens with their own bounds and beginnings.
        is_space: whether each of them is one space, bool `[T]`.
        text: the texts.
    """
    places = text.places(rows_of(tokens.ids.row_splits), tokens.starts, tokens.ends)
    # A space that is a token belongs to the word that follows it at once.
    goes_on = places.is_seen & ~tokens.begins
    is_seen = places.is_seen | (is_space & tf.concat([goes_on[1:], [False]], 0)[: tf.size(goes_on)])
    kept = tf.where(is_seen)[:, 0]
    shown = _before(tf.gather(places.last_words, kept), -1)
    begins = tf.gather(tokens.begins, kept) | (tf.gather(places.words, kept) > shown)
    return tokens._replace(
        starts=tf.where(is_seen, places.starts, tokens.starts),
        ends=tf.where(is_seen, places.ends, tokens.ends),
        begins=tf.scatter_nd(kept[:, None], begins, tf.shape(is_seen, tf.int64)),
        is_seen=is_seen,
        text=text,
        words=places.words,
        last_words=places.last_words,
    )


def _then(values: tf.Tensor, last: tf.Tensor | int) -> tf.Tensor:
    """Values `[N]`, and one more."""
    return tf.concat([values, [tf.cast(last, values.dtype)]], 0)


def _joins(kinds: tf.Tensor, begins_text: tf.Tensor) -> tf.Tensor:
    """Whether people see a character as a part of the one before it, bool `[N]`."""
    before = tf.where(begins_text, SPACE, _before(kinds, SPACE))
    joins = (kinds & JOINS > 0) & (before & (CONTROL | SPACE) == 0)
    joins |= (before & PREPENDS > 0) & (kinds & (CONTROL | SPACE) == 0)
    joins |= (before & JOINER > 0) & (kinds & PICTURE > 0)
    joins |= (before & SYLLABLE > 0) & (kinds & SYLLABLE_PART > 0)
    # Of a run of regional indicators, each second one.
    is_flag, order = kinds & FLAG > 0, tf.range(tf.size(kinds))
    begins_run = is_flag & (before & FLAG == 0)
    first = tf.gather(tf.concat([[0], order[begins_run]], 0), tf.cumsum(tf.cast(begins_run, tf.int32)))
    joins |= is_flag & ((order - first) % 2 > 0)
    return joins & ~begins_text


def _before(values: tf.Tensor, first: int) -> tf.Tensor:
    """The value before each of `[N]`; `first` before the first one."""
    return tf.concat([tf.constant([first], values.dtype), values], 0)[:-1]


def pattern_of(kind: int) -> str:
    """An RE2 character class of the characters of a kind."""
    firsts, bits = runs_of_kinds()
    ends = [*firsts[1:], 0x110000]
    runs = [(first, end - 1) for first, end, bit in zip(firsts, ends, bits, strict=True) if bit & kind]
    return "[" + "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in runs) + "]"


@functools.cache
def runs_of_kinds() -> tuple[np.ndarray, np.ndarray]:
    """Runs of characters of one kind: the first code point of each, ascending, and the bits of its kind, int32."""
    table, clusters = tables.load("huggingface", lowercase=False, strip_accents=False), tables.clusters()
    apart = _RANGE.findall(table.punctuation + table.chinese)
    ranges: dict[int, Iterable[Sequence[int]]] = {
        SPACE: [(ord(character), ord(character)) for character in WHITESPACE],
        APART: [(int(first, 16), int(last or first, 16)) for first, last in apart],
        JOINS: clusters["extend"],
        PREPENDS: clusters["prepend"],
        CONTROL: clusters["control"],
        JOINER: [(_JOINER, _JOINER)],
        FLAG: [_FLAGS],
        PICTURE: _PICTURES,
        SYLLABLE: [_SYLLABLES],
        SYLLABLE_PART: [_SYLLABLE_PARTS],
    }
    kinds = np.zeros(0x110000, np.int32)
    for kind, runs in ranges.items():
        for first, last in runs:
            kinds[first : last + 1] |= kind
    kinds[[*table.stand_ins]] &= ~APART  # letters to the reference, punctuation to the op that splits words
    firsts = np.flatnonzero(np.diff(kinds, prepend=-1)).astype(np.int32)
    return firsts, kinds[firsts]
