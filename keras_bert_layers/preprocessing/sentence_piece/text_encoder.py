"""Encodes texts with SentencePiece: a fast path that is right for nearly all texts, and a careful path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines.sentence_pieces import SentencePieces
from keras_bert_layers.preprocessing.engines.spans import SpecialTokens, original_offsets
from keras_bert_layers.preprocessing.sentence_piece.folding_normalizer import FoldingNormalizer
from keras_bert_layers.preprocessing.sentence_piece.normalizer import CharacterNormalizer
from keras_bert_layers.preprocessing.tokens.markers import MARKER, contains
from keras_bert_layers.preprocessing.tokens.tokens import Tokens, TracedEncoding, repaired, rows_of

_MARKER_BYTES = len(MARKER.encode())


class SentencePieceTextEncoder:
    """Encodes texts as the library `tokenizers` does for XLM-RoBERTa.

    It cuts out the special tokens, replaces characters, splits at whitespace, puts a marker before each word, and
    encodes it. Most texts hold no special token and no cluster of characters that is replaced as a whole; for them, one
    replacement of characters in the whole text is right.

    Args:
        normalizer: replaces characters.
        pieces: encodes words.
        special_ids: the special tokens that are found in raw text, and their ids.
        stripping: those of them that take the whitespace before them.
    """

    def __init__(
        self,
        normalizer: CharacterNormalizer | FoldingNormalizer,
        pieces: SentencePieces,
        special_ids: Mapping[str, int],
        stripping: Sequence[str] = (),
    ):
        self._normalizer = normalizer
        self._pieces = pieces
        self._special = SpecialTokens(special_ids, stripping)
        patterns = [self._special.pattern, normalizer.care_pattern]
        self._care = "|".join(pattern for pattern in patterns if pattern)
        self.encode = TracedEncoding(self._encode)

    def _encode(self, texts: tf.Tensor, with_offsets: bool) -> Tokens:
        # On an accelerator the integers between the string ops would be copied there and back.
        with tf.device("CPU:0"):
            tokens = self._encode_normalized(texts, *self._normalizer.normalize(texts), with_offsets)
            care = contains(texts, self._care) if self._care else tf.zeros_like(texts, tf.bool)
            return repaired(tokens, texts, care, self._encode_carefully)

    def _encode_carefully(self, texts: tf.Tensor) -> Tokens:
        def encode(parts: tf.Tensor, _: tf.Tensor) -> Tokens:
            return self._encode_normalized(parts, *self._normalizer.normalize_clusters(parts), True)

        return self._special.encode(texts, encode)

    def _encode_normalized(
        self, texts: tf.Tensor, normalized: tf.Tensor, sources: tf.RaggedTensor, with_offsets: bool
    ) -> Tokens:
        """The tokens of texts `[B]`, from the normalized texts."""
        words = tf.strings.split(normalized)  # ragged [B, (W)]
        has_marker = tf.strings.substr(words.values, 0, _MARKER_BYTES) == MARKER
        tokens = self._pieces.encode_words(tf.where(has_marker, words.values, MARKER + words.values))
        row_splits = tf.gather(tokens.row_splits, words.row_splits)
        if not with_offsets:
            return tokens._replace(row_splits=row_splits)
        # The marker comes from the word's first character, which is what the word's first byte comes from.
        word = tokens.texts_of()
        added = tf.where(tf.gather(has_marker, word), 0, _MARKER_BYTES)
        offset = tf.gather(_word_starts(normalized), word)
        starts = offset + tf.maximum(tokens.starts - tf.cast(added, tf.int64), 0)
        ends = offset + tf.maximum(tokens.ends - tf.cast(added, tf.int64), 1)
        text_of = tf.gather(rows_of(words.row_splits), word)
        starts, ends = original_offsets(texts, sources, text_of, starts, ends)
        return Tokens(tokens.ids, row_splits, starts, ends)


def _word_starts(texts: tf.Tensor) -> tf.Tensor:
    """The byte of its text at which each word of texts `[B]` starts, int64 `[W]`; words are split at spaces."""
    sizes = tf.cast(tf.strings.length(texts), tf.int64)
    text_starts = tf.cumsum(sizes, exclusive=True)
    is_space = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8) == ord(" ")
    follows_space = tf.concat([[True], is_space], 0)
    # A text begins after a space too; an empty one at the end begins where no byte is.
    begins = tf.scatter_nd(text_starts[:, None], tf.ones_like(sizes), tf.shape(follows_space, tf.int64)) > 0
    starts = tf.where((follows_space | begins)[:-1] & ~is_space)[:, 0]
    rows = tf.searchsorted(text_starts, starts, side="right") - 1
    return starts - tf.gather(text_starts, rows)
