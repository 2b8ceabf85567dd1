"""The whole way from text to tokens: a fast one that is nearly always right, and a careful one for the other texts."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing._normalizer import Normalizer, Sources, original_offsets
from keras_bert_layers.preprocessing._special_tokens import SpecialTokens
from keras_bert_layers.preprocessing._tokens import Tokens, encode_spans
from keras_bert_layers.preprocessing._word_pieces import WordPieces
from keras_bert_layers.preprocessing.tables import NormalizationTable


class Encoder:
    """Normalises and encodes texts as the reference does.

    Two ops of tf.text do it, unless a text holds a word that is too long for them, a capital sigma whose lower case
    depends on its neighbours, or a written special token. Such a text leaves [UNK] or an opening bracket in the
    tokens; only then is it looked for, and only the texts that hold one go the careful way.

    Args:
        vocabulary: the tokens.
        table: the reference's table.
        max_word_length: the longest word, in characters, that does not become [UNK] at once.
        split_chinese: whether every Chinese character is a word; if not, every text goes the careful way.
        special_tokens: token -> id of what is cut out of raw text before anything else; empty for none.
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

        # Functions of their own, so that each is traced once, however often and wherever a model calls it.
        signature = [tf.TensorSpec([None], tf.string)]
        self._functions = {
            with_offsets: tf.function(
                functools.partial(self._encode, with_offsets=with_offsets), input_signature=signature, autograph=False
            )
            for with_offsets in (False, True)
        }

    def encode(self, texts: tf.Tensor, *, with_offsets: bool) -> Tokens:
        """The tokens of texts `[B]`; their starts and ends mean something only `with_offsets`."""
        tokens = self._functions[with_offsets](texts)
        num_texts = texts.shape[0]
        tokens.row_splits.set_shape([None if num_texts is None else num_texts + 1])
        return tokens

    def _encode(self, texts: tf.Tensor, with_offsets: bool) -> Tokens:
        # On an accelerator the integers between the string ops would travel there and back.
        with tf.device("CPU:0"):
            if not self._word_pieces.splits_texts:
                return self._encode_carefully(texts)
            return self._encode_fast(texts, with_offsets)

    def _encode_fast(self, texts: tf.Tensor, with_offsets: bool) -> Tokens:
        if with_offsets:
            normalized, sources = self._normalizer.normalize_with_sources(texts)
            tokens = self._word_pieces.encode_texts(normalized)
            result = _in_original(texts, sources, tokens)
        else:
            normalized = self._normalizer.normalize(texts)
            tokens = result = self._word_pieces.encode_texts(normalized)
        return tf.cond(
            self._is_suspicious(tokens),
            lambda: self._repair(texts, result, self._needs_care(texts, normalized, tokens)),
            lambda: result,
        )

    def _is_suspicious(self, tokens: Tokens) -> tf.Tensor:
        found = [tf.reduce_any(tokens.ids == token_id) for token_id in self._suspicious_ids]
        return tf.reduce_any(tf.stack(found))

    def _needs_care(self, texts: tf.Tensor, normalized: tf.Tensor, tokens: Tokens) -> tf.Tensor:
        """Which texts the fast way gets wrong, bool `[B]`."""
        care = self._word_pieces.has_long_word(tokens, tf.size(texts))
        if self._special_tokens is not None:
            care |= self._special_tokens.has_any(texts)
        if self._normalizer.marks_sigmas:
            care |= self._normalizer.has_marked_sigma(normalized)
        return care

    def _repair(self, texts: tf.Tensor, tokens: Tokens, care: tf.Tensor) -> Tokens:
        """The tokens with those of the texts that need care made anew."""

        def repaired() -> Tokens:
            everything = tokens.append(self._encode_carefully(tf.boolean_mask(texts, care)))
            repaired_rows = tf.size(care) - 1 + tf.cumsum(tf.cast(care, tf.int32))
            return everything.gather(tf.where(care, repaired_rows, tf.range(tf.size(care))))

        return tf.cond(tf.reduce_any(care), repaired, lambda: tokens)

    def _encode_carefully(self, texts: tf.Tensor) -> Tokens:
        if self._special_tokens is None:
            return self._encode_plain(texts)
        return encode_spans(self._special_tokens.cut(texts), self._encode_plain)

    def _encode_plain(self, texts: tf.Tensor) -> Tokens:
        """The careful way for text without special tokens."""
        normalized, sources = self._normalizer.normalize_with_sources(texts)
        tokens = self._word_pieces.encode_words(self._normalizer.lower_sigmas(normalized))
        return _in_original(texts, sources, tokens)


def _in_original(texts: tf.Tensor, sources: Sources, tokens: Tokens) -> Tokens:
    starts, ends = original_offsets(texts, sources, tokens.texts_of(), tokens.starts, tokens.ends)
    return tokens._replace(starts=starts, ends=ends)
