"""Encodes texts with byte-level BPE: words by GPT-2's pattern, merges, special tokens, offsets in original bytes."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.byte_level.merges import ByteMerges
from keras_bert_layers.preprocessing.engines.composition import Composer
from keras_bert_layers.preprocessing.engines.spans import SpecialTokens
from keras_bert_layers.preprocessing.tokens.tokens import Tokens, TracedEncoding, num_bytes, rows_of_lengths

# The classes of the table.
OTHER, LETTER, NUMBER, WHITESPACE = range(4)
_SPACE, _APOSTROPHE = " ", "'"
# The letters of 's, 't, 'm, 'd, 're, 've and 'll.
_ALONE, _BEFORE_E, _E, _L = range(1, 5)
_KINDS = {"s": _ALONE, "t": _ALONE, "m": _ALONE, "d": _ALONE, "r": _BEFORE_E, "v": _BEFORE_E, "e": _E, "l": _L}
_LETTERS = [_KINDS.get(chr(code), 0) for code in range(129)]


class Words(NamedTuple):
    """The W words of B texts of N characters, and where they are from.

    Attributes:
        texts: string `[W]`, the words, as well-formed UTF-8.
        row_splits: int64 `[B + 1]`, the words of each text.
        first_bytes: int64 `[W]`, the byte of all words at which each begins.
        characters: int64 `[M]`, the character that each of the M bytes of all words is of.
        starts: int64 `[N]`, the byte of its text at which each character begins.
        ends: int64 `[N]`.
    """

    texts: tf.Tensor
    row_splits: tf.Tensor
    first_bytes: tf.Tensor
    characters: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


class WordSplitter:
    r"""Splits texts as GPT-2 does: contractions, letters, numbers, other characters, whitespace.

    Its pattern is `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`. RE2 has no look-ahead,
    and its tables of Unicode are not those of the library `tokenizers`. So characters have classes, from a table made
    with that library, and a word begins where the class of a character and that of the one before it say so.

    References:
        openai/gpt-2, encoder.py; `pre_tokenizers/byte_level.rs` in huggingface/tokenizers.
    """

    def __init__(self) -> None:
        # Characters after the table's are of the last class, as its last one is.
        self._classes = tf.constant(tables.character_classes())

    def split(self, texts: tf.Tensor) -> Words:
        """The words of texts `[B]`; bytes that are not UTF-8 are skipped."""
        ragged, offsets = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="ignore")
        codes, splits, starts = ragged.values, ragged.row_splits, offsets.values
        num_characters = tf.size(codes)
        sizes = num_bytes(codes)
        begins_text = _marks(splits[:-1], num_characters)
        begins = self._begins(codes, begins_text)
        places = tf.where(begins)[:, 0]  # [W]
        ends = tf.concat([places, tf.size(codes, tf.int64)[None]], 0)
        words = tf.strings.unicode_encode(tf.RaggedTensor.from_row_splits(codes, ends, validate=False), "UTF-8")
        byte_splits = tf.concat([[0], tf.cumsum(sizes)], 0)
        return Words(
            words,
            tf.gather(tf.concat([[0], tf.cumsum(tf.cast(begins, tf.int64))], 0), splits),
            tf.gather(byte_splits, places),
            rows_of_lengths(sizes),
            starts,
            starts + sizes,
        )

    def _begins(self, codes: tf.Tensor, begins_text: tf.Tensor) -> tf.Tensor:
        """Whether a word begins with a character, bool `[N]`."""
        kinds = tf.cast(tf.gather(self._classes, tf.minimum(codes, tf.size(self._classes) - 1)), tf.int32)
        # What is moved past the end comes to the beginning of a text, where a word begins anyway.
        before, code_before = (tf.where(begins_text, -1, _rolled(part, 1)) for part in (kinds, codes))
        is_white, ends_text = kinds == WHITESPACE, _rolled(begins_text, -1)
        # The last character of several of whitespace begins a word, if another follows, which a space belongs to.
        is_last = is_white & ~ends_text & (_rolled(kinds, -1) != WHITESPACE)
        begins = tf.where(is_white, (before != WHITESPACE) | is_last, (before != kinds) & (code_before != ord(_SPACE)))
        begins |= begins_text
        is_contraction = (codes == ord(_APOSTROPHE)) & begins
        # No contraction goes on in the next text.
        letters = tf.where(begins_text, 0, tf.gather(_LETTERS, tf.minimum(codes, len(_LETTERS) - 1)))
        first, second = _rolled(letters, -1), _rolled(letters, -2)
        of_one = is_contraction & (first == _ALONE)
        of_two = is_contraction & (((first == _BEFORE_E) & (second == _E)) | ((first == _L) & (second == _L)))
        begins &= ~_rolled(of_one | of_two, 1)
        return begins | _rolled(of_one, 2) | _rolled(of_two, 3)


class BytePairTextEncoder:
    """Encodes texts as the library `tokenizers` does for RoBERTa and ModernBERT.

    Args:
        merges: encodes words.
        special: finds special tokens.
        added: finds other tokens in what is between these, after it is composed.
        composer: composes characters; None for texts as they are.
        add_prefix_space: whether a text that does not begin with a space gets one, also a text after a special token.
        spaces: how many spaces each token begins and ends with, int64 `[V, 2]`, which offsets leave out; None for
            offsets with spaces.
    """

    def __init__(
        self,
        merges: ByteMerges,
        special: SpecialTokens,
        *,
        added: SpecialTokens,
        composer: Composer | None,
        add_prefix_space: bool,
        spaces: np.ndarray | None,
    ):
        self._words, self._merges, self._special = WordSplitter(), merges, special
        self._added, self._composer = added, composer
        self._add_prefix_space = add_prefix_space
        self._spaces = None if spaces is None else tf.constant(spaces, tf.int64)
        self.encode = TracedEncoding(self._encode)

    def _encode(self, texts: tf.Tensor, with_offsets: bool) -> Tokens:
        # On an accelerator the integers between the string ops would be copied there and back.
        with tf.device("CPU:0"):
            return self._special.encode(texts, functools.partial(self._encode_rest, with_offsets=with_offsets))

    def _encode_rest(self, texts: tf.Tensor, is_first: tf.Tensor, *, with_offsets: bool) -> Tokens:
        """The tokens of texts `[B]` without special tokens."""
        encode = functools.partial(self._encode_plain, with_offsets=with_offsets)
        if self._composer is None:
            return self._added.encode(texts, encode, is_first)
        changes = self._composer.changes(texts)
        composed = self._composer.compose(tf.boolean_mask(texts, changes))
        tokens = self._added.encode(
            tf.tensor_scatter_nd_update(texts, tf.where(changes), composed.texts), encode, is_first
        )
        if not with_offsets:
            return tokens
        text = tokens.texts_of()
        places = tf.where(tf.gather(changes, text))
        number = tf.gather(tf.cumsum(tf.cast(changes, tf.int64)) - 1, tf.gather_nd(text, places))
        offsets = (tf.gather_nd(part, places) for part in (tokens.starts, tokens.ends))
        starts, ends = (
            tf.tensor_scatter_nd_update(part, places, found)
            for part, found in zip((tokens.starts, tokens.ends), composed.in_original(number, *offsets), strict=True)
        )
        return tokens._replace(starts=starts, ends=ends)

    def _encode_plain(self, texts: tf.Tensor, is_first: tf.Tensor, *, with_offsets: bool) -> Tokens:
        """The tokens of texts `[B]` by words alone.

        Args:
            texts: the texts.
            is_first: whether they are the beginnings of whole texts, bool `[B]`.
            with_offsets: whether offsets are needed.
        """
        added = tf.zeros(tf.shape(texts), tf.int64)
        if self._add_prefix_space:
            read = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
            is_added = (read != "") & (tf.strings.substr(read, 0, 1) != _SPACE)
            texts, added = tf.where(is_added, _SPACE + texts, texts), tf.cast(is_added, tf.int64)
        words = self._words.split(texts)
        of_words = self._merges.encode_words(words.texts)
        tokens = of_words._replace(row_splits=tf.gather(of_words.row_splits, words.row_splits))
        if not with_offsets:
            return tokens
        first_byte, text = tf.gather(words.first_bytes, of_words.texts_of()), tokens.texts_of()
        first, last = (tf.gather(words.characters, first_byte + at) for at in (of_words.starts, of_words.ends - 1))
        added = tf.gather(added, text)
        # An added space comes from the first character, also if it is a token of its own.
        begins_added = tf.cast(tf.gather(words.ends, first) == added, tf.int64)
        last = tf.maximum(last, first + begins_added)
        starts = tf.maximum(tf.gather(words.starts, first) - added, 0)
        ends = tf.gather(words.ends, last) - added
        if self._spaces is None:
            return tokens._replace(starts=starts, ends=ends)
        # As `process_offsets` of the library, in which a space has as many bytes as the character that it comes from.
        before, after = tf.unstack(tf.gather(self._spaces, tokens.ids), axis=1)
        if self._add_prefix_space:
            index = tf.range(tf.size(tokens.ids, tf.int64))
            begins = (starts == 0) | (index == tf.gather(tokens.row_splits, text))
            before = tf.where(begins & tf.gather(is_first, text) & (before == 1), tf.zeros_like(before), before)
        size = tf.gather(words.ends - words.starts, first + begins_added)
        starts = tf.minimum(starts + before * size, ends)
        return tokens._replace(starts=starts, ends=tf.maximum(ends - after * size, starts))


def _rolled(values: tf.Tensor, by: int) -> tf.Tensor:
    """The values, each `by` places later; as `tf.roll`, which takes ten times as long for few."""
    return tf.concat([values[-by:], values[:-by]], 0)


def _marks(places: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Whether an index is among some places, bool `[size]`; places may repeat, and be `size`."""
    return tf.scatter_nd(places[:, None], tf.ones_like(places), tf.cast(size, tf.int64)[None] + 1)[:-1] > 0
