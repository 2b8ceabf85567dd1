"""Encodes texts with SentencePiece as DeBERTa's tokenizer of transformers 5: words begin with their space."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines.composition import Composed, Composer
from keras_bert_layers.preprocessing.engines.sentence_pieces import SentencePieces
from keras_bert_layers.preprocessing.engines.spans import SpecialTokens
from keras_bert_layers.preprocessing.tokens.markers import MARKER, WHITESPACE
from keras_bert_layers.preprocessing.tokens.tokens import Tokens, TracedEncoding, num_bytes, rows_of, rows_of_lengths

# Other whitespace stays as it is where it stands alone.
_SPACES = rf"[{WHITESPACE}]{{2,}}|[\n\r\t]"


class ComposedTextEncoder:
    """Encodes texts by characters in Unicode's normal form C.

    Between special tokens, several characters of whitespace, or one line end or tab, become a space; characters are
    composed; whitespace at the end is dropped. Each space is the marker of the word after it, and the first word gets
    one. A marker that a text holds begins a word too.

    Args:
        pieces: encodes words.
        special_ids: the special tokens that are found in raw text, and their ids.
        stripping: those of them that take the whitespace before them.
    """

    def __init__(self, pieces: SentencePieces, special_ids: Mapping[str, int], stripping: Sequence[str] = ()):
        self._pieces, self._composer = pieces, Composer()
        self._special = SpecialTokens(special_ids, stripping)
        self.encode = TracedEncoding(self._encode)

    def _encode(self, texts: tf.Tensor, with_offsets: bool) -> Tokens:
        # On an accelerator the integers between the string ops would be copied there and back.
        with tf.device("CPU:0"):
            return self._special.encode(texts, functools.partial(self._encode_rest, with_offsets=with_offsets))

    def _encode_rest(self, texts: tf.Tensor, _: tf.Tensor, *, with_offsets: bool) -> Tokens:
        """The tokens of texts `[B]` without special tokens."""
        changes = self._composer.changes(texts) | with_offsets
        composed = self._composer.compose(tf.boolean_mask(texts, changes))
        read = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
        read = tf.tensor_scatter_nd_update(read, tf.where(changes), composed.texts)
        marked = tf.strings.regex_replace(read, _SPACES, " ")
        marked = tf.strings.regex_replace(marked, f"[{WHITESPACE}]+$", "")
        marked = tf.strings.regex_replace(marked, " ", MARKER)
        has_marker = (marked == "") | tf.strings.regex_full_match(marked, rf"{MARKER}\C*")
        parts = tf.strings.split(tf.where(has_marker, marked, MARKER + marked), MARKER)[:, 1:]  # before the first: ""
        words = MARKER + parts.values
        of_words = self._pieces.encode_words(words)
        tokens = of_words._replace(row_splits=tf.gather(of_words.row_splits, parts.row_splits))
        if not with_offsets:
            return tokens
        text, word = tokens.texts_of(), of_words.texts_of()
        codes = tf.strings.unicode_decode(words, "UTF-8")
        byte = tf.gather(tf.cumsum(tf.cast(tf.strings.length(words), tf.int64), exclusive=True), word)
        character = rows_of_lengths(num_bytes(codes.values))  # of each byte of all words
        first_of_text = tf.gather(tf.gather(codes.row_splits, parts.row_splits), text)
        added = tf.cast(~has_marker, tf.int64)
        first, last = (
            tf.maximum(tf.gather(character, byte + at) - first_of_text - tf.gather(added, text), 0)
            for at in (of_words.starts, of_words.ends - 1)
        )
        starts, ends, splits = _read_characters(composed)
        begin = tf.gather(splits, text)
        return tokens._replace(starts=tf.gather(starts, begin + first), ends=tf.gather(ends, begin + last))


def _read_characters(composed: Composed) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Where the characters come from that are left when runs of whitespace are one space, which is from the last.

    Returns:
        Starts and ends, int64 `[N]`, in bytes of the text; and int64 `[B + 1]`, the characters of each text.
    """
    codes = tf.strings.unicode_decode(composed.texts, "UTF-8")
    row = rows_of(codes.row_splits)
    is_white = tf.reduce_any(codes.values[:, None] == [*map(ord, WHITESPACE)], axis=1)
    goes_on = is_white[:-1] & is_white[1:] & (row[:-1] == row[1:])
    is_kept = ~tf.concat([goes_on, tf.zeros_like(is_white[:1])], 0)
    counted = tf.concat([[0], tf.cumsum(tf.cast(is_kept, tf.int64))], 0)
    starts, ends = (tf.boolean_mask(part, is_kept) for part in (composed.starts, composed.ends))
    return starts, ends, tf.gather(counted, codes.row_splits)
