"""Text to tokens: a fast path that is nearly always right, and a careful path for the remaining texts."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing._normalizer import Normalizer, original_offsets
from keras_bert_layers.preprocessing._special_tokens import SpecialTokens
from keras_bert_layers.preprocessing._tokens import Tokens, concatenate, encode_spans
from keras_bert_layers.preprocessing._word_pieces import WordPieces
from keras_bert_layers.preprocessing.tables import NormalizationTable

# A batch of at least this many texts is encoded in parallel parts. For fewer texts, starting the parts costs more time
# than they save.
MIN_TEXTS_FOR_PARTS = 128
NUM_PARTS = 4
# TensorFlow slices a tensor without a copy if the slices start at multiples of 64 bytes; a string takes 24.
ALIGNED_TEXTS = 8


class Encoder:
    """Normalizes and encodes texts as the reference does.

    Two ops of tf.text are enough, unless a text has a word that is too long for them, a capital sigma whose lower case
    depends on its neighbours, or a written special token. All three leave [UNK] or an opening bracket in the tokens. If
    a batch has such tokens, its texts are checked, and only the affected ones take the careful path.

    Args:
        vocabulary: the tokens.
        table: the reference's table.
        max_word_length: a word of more characters becomes [UNK].
        split_chinese: whether every Chinese character is a word of its own; if not, every text takes the careful path.
        special_tokens: token -> id of special tokens that are recognized in raw text.
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        table: NormalizationTable,
        *,
        max_word_length: int,
        split_chinese: bool,
        special_tokens: dict[str, int],
    ):
        self._normalizer = Normalizer(table)
        self._word_pieces = WordPieces(vocabulary, table, max_word_length=max_word_length, split_chinese=split_chinese)
        self._special_tokens = SpecialTokens(special_tokens) if special_tokens else None
        self._suspicious_ids = [self._word_pieces.unknown_id]
        if special_tokens and "[" in vocabulary:
            self._suspicious_ids.append(list(vocabulary).index("["))

        # Separate functions, so that each is traced once, however often and wherever a model calls it.
        signature = [tf.TensorSpec([None], tf.string)]
        self._functions = {
            with_offsets: tf.function(
                functools.partial(self._encode, with_offsets=with_offsets), input_signature=signature, autograph=False
            )
            for with_offsets in (False, True)
        }

    def encode(self, texts: tf.Tensor, *, with_offsets: bool) -> Tokens:
        """The tokens of texts `[B]`; their starts and ends are valid only `with_offsets`."""
        tokens = self._functions[with_offsets](texts)
        num_texts = texts.shape[0]
        tokens.row_splits.set_shape([None if num_texts is None else num_texts + 1])
        return tokens

    def _encode(self, texts: tf.Tensor, with_offsets: bool) -> Tokens:
        # On an accelerator the integers between the string ops would be copied there and back.
        with tf.device("CPU:0"):
            if not self._word_pieces.splits_texts:
                return self._encode_carefully(texts)
            return self._encode_fast(texts, with_offsets)

    def _encode_fast(self, texts: tf.Tensor, with_offsets: bool) -> Tokens:
        tokens, result = self._encode_in_parts(texts, with_offsets)
        return tf.cond(
            self._is_suspicious(tokens),
            lambda: self._repair(texts, result, self._needs_care(texts, tokens)),
            lambda: result,
        )

    def _encode_in_parts(self, texts: tf.Tensor, with_offsets: bool) -> tuple[Tokens, Tokens]:
        """Runs the two ops, which use one core each, on parts of a large batch in parallel."""

        def parts() -> tuple[Tokens, Tokens]:
            size = tf.size(texts) // NUM_PARTS // ALIGNED_TEXTS * ALIGNED_TEXTS
            bounds = [*(size * part for part in range(NUM_PARTS)), tf.size(texts)]
            found = [self._encode_part(texts[a:b], with_offsets) for a, b in itertools.pairwise(bounds)]
            return concatenate([tokens for tokens, _ in found]), concatenate([result for _, result in found])

        is_large = tf.size(texts) >= MIN_TEXTS_FOR_PARTS
        return tf.cond(is_large, parts, lambda: self._encode_part(texts, with_offsets))

    def _encode_part(self, texts: tf.Tensor, with_offsets: bool) -> tuple[Tokens, Tokens]:
        """The tokens with offsets in the normalized text, and, `with_offsets`, with offsets in the original text."""
        if not with_offsets:
            tokens = self._word_pieces.encode_texts(self._normalizer.normalize(texts))
            return tokens, tokens
        normalized, sources = self._normalizer.normalize_with_sources(texts)
        tokens = self._word_pieces.encode_texts(normalized)
        return tokens, _in_original(texts, sources, tokens)

    def _is_suspicious(self, tokens: Tokens) -> tf.Tensor:
        found = [tf.reduce_any(tokens.ids == token_id) for token_id in self._suspicious_ids]
        return tf.reduce_any(tf.stack(found))

    def _needs_care(self, texts: tf.Tensor, tokens: Tokens) -> tf.Tensor:
        """Whether the fast path gets a text wrong, bool `[B]`."""
        care = self._word_pieces.has_long_word(tokens, tf.size(texts))
        if self._special_tokens is not None:
            care |= self._special_tokens.has_any(texts)
        if self._normalizer.marks_sigmas:
            care |= self._normalizer.has_sigma(texts)
        return care

    def _repair(self, texts: tf.Tensor, tokens: Tokens, care: tf.Tensor) -> Tokens:
        """Encodes the texts that need care again, and replaces their tokens."""

        def repaired() -> Tokens:
            everything = concatenate([tokens, self._encode_carefully(tf.boolean_mask(texts, care))])
            repaired_rows = tf.size(care) - 1 + tf.cumsum(tf.cast(care, tf.int32))
            return everything.gather(tf.where(care, repaired_rows, tf.range(tf.size(care))))

        return tf.cond(tf.reduce_any(care), repaired, lambda: tokens)

    def _encode_carefully(self, texts: tf.Tensor) -> Tokens:
        if self._special_tokens is None:
            return self._encode_plain(texts)
        return encode_spans(self._special_tokens.cut(texts), self._encode_plain)

    def _encode_plain(self, texts: tf.Tensor) -> Tokens:
        """The careful path for text without special tokens."""
        normalized, sources = self._normalizer.normalize_with_sources(texts)
        tokens = self._word_pieces.encode_words(self._normalizer.lower_sigmas(normalized))
        return _in_original(texts, sources, tokens)


def _in_original(texts: tf.Tensor, sources: tf.RaggedTensor, tokens: Tokens) -> Tokens:
    starts, ends = original_offsets(texts, sources, tokens.texts_of(), tokens.starts, tokens.ends)
    return tokens._replace(starts=starts, ends=ends)
