"""Encodes texts with byte-level BPE: words, merges, special tokens, and offsets in the original bytes."""

from __future__ import annotations

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.byte_level.merges import ByteMerges
from keras_bert_layers.preprocessing.byte_level.words import WordSplitter
from keras_bert_layers.preprocessing.engines.spans import SpecialTokens
from keras_bert_layers.preprocessing.tokens.markers import contains
from keras_bert_layers.preprocessing.tokens.tokens import Tokens, TracedEncoding, repaired

_SPACE = " "


class BytePairTextEncoder:
    """Encodes texts as the library `tokenizers` does for RoBERTa.

    Args:
        merges: encodes words.
        special: finds special tokens.
        add_prefix_space: whether a text that does not begin with a space gets one, also a text after a special token.
        spaces: how many spaces each token begins and ends with, int32 `[V, 2]`, which offsets leave out; None for
            offsets with spaces.
    """

    def __init__(
        self, merges: ByteMerges, special: SpecialTokens, *, add_prefix_space: bool, spaces: np.ndarray | None
    ):
        self._words, self._merges, self._special = WordSplitter(), merges, special
        self._add_prefix_space = add_prefix_space
        self._spaces = None if spaces is None else tf.constant(spaces, tf.int64)
        self.encode = TracedEncoding(self._encode)

    def _encode(self, texts: tf.Tensor, with_offsets: bool) -> Tokens:
        # On an accelerator the integers between the string ops would be copied there and back.
        with tf.device("CPU:0"):
            is_first = tf.ones_like(texts, tf.bool)
            tokens = self._encode_plain(texts, is_first, with_offsets)
            care = contains(texts, self._special.pattern) if self._special.pattern else ~is_first
            return repaired(tokens, texts, care, lambda some: self._special.encode(some, self._encode_plain))

    def _encode_plain(self, texts: tf.Tensor, is_first: tf.Tensor, with_offsets: bool = True) -> Tokens:
        """The tokens of texts `[B]` without special tokens.

        Args:
            texts: the texts.
            is_first: whether they are the beginnings of whole texts, bool `[B]`.
            with_offsets: whether offsets are needed.
        """
        added = tf.zeros(tf.shape(texts), tf.int64)
        if self._add_prefix_space:
            is_added = (texts != "") & (tf.strings.substr(texts, 0, 1) != _SPACE)
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
