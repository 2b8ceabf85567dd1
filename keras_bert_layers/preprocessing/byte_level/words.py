"""Splitting texts into the words of byte-level BPE, in graph: GPT-2's pattern, by classes of characters."""

from __future__ import annotations

from typing import NamedTuple

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import tables

# The classes of the table.
OTHER, LETTER, NUMBER, WHITESPACE = range(4)
_SPACE, _APOSTROPHE = ord(" "), ord("'")
# After an apostrophe; a letter in place of the second of those of one letter.
_CONTRACTIONS = ("s", "t", "m", "d", "re", "ve", "ll")


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
        sizes = sum((tf.cast(codes >= least, tf.int32) for least in (0x80, 0x800, 0x10000)), tf.ones_like(codes))
        begins_text = _marks(splits[:-1], num_characters)
        begins = self._begins(codes, begins_text)
        places = tf.where(begins)[:, 0]  # [W]
        ends = tf.concat([places, tf.size(codes, tf.int64)[None]], 0)
        words = tf.strings.unicode_encode(tf.RaggedTensor.from_row_splits(codes, ends, validate=False), "UTF-8")
        byte_splits = tf.concat([[0], tf.cumsum(tf.cast(sizes, tf.int64))], 0)
        return Words(
            words,
            tf.gather(tf.concat([[0], tf.cumsum(tf.cast(begins, tf.int64))], 0), splits),
            tf.gather(byte_splits, places),
            tf.repeat(tf.range(tf.size(codes, tf.int64)), sizes),
            starts,
            starts + tf.cast(sizes, tf.int64),
        )

    def _begins(self, codes: tf.Tensor, begins_text: tf.Tensor) -> tf.Tensor:
        """Whether a word begins with a character, bool `[N]`."""
        kinds = tf.cast(tf.gather(self._classes, tf.minimum(codes, tf.size(self._classes) - 1)), tf.int32)
        before, code_before = (tf.where(begins_text, -1, _shifted(part, 1)) for part in (kinds, codes))
        is_white, ends_text = kinds == WHITESPACE, _shifted(begins_text, -1, fill=True)
        # The last character of several of whitespace begins a word, if another follows, which a space belongs to.
        is_last = is_white & ~ends_text & (_shifted(kinds, -1) != WHITESPACE)
        begins = tf.where(is_white, (before != WHITESPACE) | is_last, (before != kinds) & (code_before != _SPACE))
        begins |= begins_text
        is_contraction = (codes == _APOSTROPHE) & begins
        for letters in _CONTRACTIONS:
            found = is_contraction
            for place, letter in enumerate(letters, 1):
                is_inside = ~_shifted(begins_text, -place, fill=True)
                found &= (_shifted(codes, -place) == ord(letter)) & is_inside
            inside = _shifted(found, 1)
            begins = (begins & ~inside) | _shifted(found, len(letters) + 1)
        return begins


def _shifted(values: tf.Tensor, by: int, *, fill: bool = False) -> tf.Tensor:
    """The values, each `by` places later, or earlier; what is missing is `fill`."""
    missing = tf.fill([tf.minimum(abs(by), tf.size(values))], tf.cast(fill, values.dtype))
    return tf.concat([missing, values[:-by]] if by > 0 else [values[-by:], missing], 0)


def _marks(places: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Whether an index is among some places, bool `[size]`; places may repeat, and be `size`."""
    counts = tf.math.bincount(tf.cast(places, tf.int32), minlength=size + 1)
    return counts[:size] > 0
