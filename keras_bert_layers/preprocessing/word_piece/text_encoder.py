"""Encodes texts with WordPiece: a fast path that is right for nearly all texts, and a careful path."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines.spans import original_offsets
from keras_bert_layers.preprocessing.tokens.tokens import Tokens, TracedEncoding, concatenate, repaired
from keras_bert_layers.preprocessing.word_piece.added_tokens import AddedTokens
from keras_bert_layers.preprocessing.word_piece.normalizer import Normalizer
from keras_bert_layers.preprocessing.word_piece.pieces import WordPieces

# A batch of at least this many texts is encoded in parallel parts. For fewer texts, starting the parts costs more time
# than they save.
MIN_TEXTS_FOR_PARTS = 128
NUM_PARTS = 4
# TensorFlow slices a tensor without a copy if the slices start at multiples of 64 bytes; a string takes 24.
ALIGNED_TEXTS = 8


class WordPieceTextEncoder:
    """Normalizes and encodes texts as the reference does.

    Two ops of tf.text are enough, unless a text has a word that is too long for them, a capital sigma whose lower case
    depends on its neighbours, or a written added token, such as a special token. The first two leave [UNK] in the
    tokens, and so does the third, or a punctuation mark that it contains. If a batch has such tokens, its texts are
    checked, and only the affected ones take the careful path. Texts are searched for added tokens that leave no trace.

    Args:
        normalizer: normalizes texts.
        word_pieces: encodes normalized texts. If it cannot split them into words, every text takes the careful path.
        added_tokens: finds tokens in raw text; None if there are none.
        trace_ids: the ids that added tokens leave as traces.
    """

    def __init__(
        self,
        normalizer: Normalizer,
        word_pieces: WordPieces,
        added_tokens: AddedTokens | None = None,
        trace_ids: Sequence[int] = (),
    ):
        self._normalizer = normalizer
        self._word_pieces = word_pieces
        self._added_tokens = added_tokens
        self._suspicious_ids = [word_pieces.unknown_id, *trace_ids]
        self._searched = None if added_tokens is None or added_tokens.traces else added_tokens
        self.encode = TracedEncoding(self._encode)

    def _encode(self, texts: tf.Tensor, with_offsets: bool) -> Tokens:
        # On an accelerator the integers between the string ops would be copied there and back.
        with tf.device("CPU:0"):
            if not self._word_pieces.splits_texts:
                return self._encode_carefully(texts)
            return self._encode_fast(texts, with_offsets)

    def _encode_fast(self, texts: tf.Tensor, with_offsets: bool) -> Tokens:
        tokens, result, has_added = self._encode_in_parts(texts, with_offsets)
        is_suspicious = tf.reduce_any(tf.stack([tf.reduce_any(tokens.ids == each) for each in self._suspicious_ids]))
        if self._searched is not None:
            is_suspicious |= tf.reduce_any(has_added)
        return tf.cond(
            is_suspicious,
            lambda: repaired(result, texts, self._needs_care(texts, tokens, has_added), self._encode_carefully),
            lambda: result,
        )

    def _encode_in_parts(self, texts: tf.Tensor, with_offsets: bool) -> tuple[Tokens, Tokens, tf.Tensor]:
        """Runs the two ops, which use one core each, on parts of a large batch in parallel."""

        def parts() -> tuple[Tokens, Tokens, tf.Tensor]:
            size = tf.size(texts) // NUM_PARTS // ALIGNED_TEXTS * ALIGNED_TEXTS
            bounds = [*(size * part for part in range(NUM_PARTS)), tf.size(texts)]
            found = zip(
                *(self._encode_part(texts[a:b], with_offsets) for a, b in itertools.pairwise(bounds)), strict=True
            )
            tokens, result, has_added = found
            return concatenate(tokens), concatenate(result), tf.concat(has_added, 0)

        is_large = tf.size(texts) >= MIN_TEXTS_FOR_PARTS
        return tf.cond(is_large, parts, lambda: self._encode_part(texts, with_offsets))

    def _encode_part(self, texts: tf.Tensor, with_offsets: bool) -> tuple[Tokens, Tokens, tf.Tensor]:
        """The tokens with offsets in the normalized text, and, `with_offsets`, with offsets in the original text.

        The third result is for each text whether it may contain an added token; it is empty if texts are not searched.
        """
        if not with_offsets:
            normalized = self._normalizer.normalize(texts)
            tokens = result = self._word_pieces.encode_texts(normalized)
        else:
            normalized, sources = self._normalizer.normalize_with_sources(texts)
            tokens = self._word_pieces.encode_texts(normalized)
            result = _in_original(texts, sources, tokens)
        has_added = tf.zeros([0], tf.bool) if self._searched is None else self._searched.may_have(texts, normalized)
        return tokens, result, has_added

    def _needs_care(self, texts: tf.Tensor, tokens: Tokens, has_added: tf.Tensor) -> tf.Tensor:
        """Whether the fast path gets a text wrong, bool `[B]`."""
        care = self._word_pieces.has_long_word(tokens, tf.size(texts))
        if self._added_tokens is not None:
            care |= has_added if self._searched is not None else self._added_tokens.may_have(texts, texts)
        if self._normalizer.marks_sigmas:
            care |= self._normalizer.has_sigma(texts)
        return care

    def _encode_carefully(self, texts: tf.Tensor) -> Tokens:
        if self._added_tokens is None:
            return self._encode_plain(texts)
        return self._added_tokens.encode(texts, self._encode_plain, self._word_pieces.encode_words)

    def _encode_plain(self, texts: tf.Tensor) -> Tokens:
        """The careful path for text without added tokens."""
        normalized, sources = self._normalizer.normalize_with_sources(texts)
        tokens = self._word_pieces.encode_words(self._normalizer.lower_sigmas(normalized))
        return _in_original(texts, sources, tokens)


def _in_original(texts: tf.Tensor, sources: tf.RaggedTensor, tokens: Tokens) -> Tokens:
    starts, ends = original_offsets(texts, sources, tokens.texts_of(), tokens.starts, tokens.ends)
    return tokens._replace(starts=starts, ends=ends)
