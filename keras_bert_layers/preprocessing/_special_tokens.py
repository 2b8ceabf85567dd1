"""Special tokens that are written in a text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from keras_bert_layers._internal.lazy import tf, tf_text
from keras_bert_layers.preprocessing._tokens import NOT_FORCED, Spans


class SpecialTokens:
    """Cuts special tokens out of raw text, wherever they stand, also inside a word.

    transformers' fast BertTokenizer keeps them as "added tokens": found in the text as it is written, before any
    normalisation, in this case only.

    Args:
        ids: token, as "[SEP]" -> id.
    """

    def __init__(self, ids: Mapping[str, int]):
        self._ids = dict(ids)
        self._pattern = "|".join(re.escape(token) for token in self._ids)

    def has_any(self, texts: tf.Tensor) -> tf.Tensor:
        """Which of the texts `[B]` hold a special token."""
        return tf.strings.regex_full_match(texts, f"(?s).*(?:{self._pattern}).*")

    def cut(self, texts: tf.Tensor) -> Spans:
        """The texts `[B]` as spans: special tokens with their ids, and what is between them."""
        # The op ends a string at NUL. Start of heading is dropped as NUL is, and is one byte too.
        texts = tf.strings.regex_replace(texts, r"\x00", "\x01")
        spans, starts, ends = tf_text.regex_split_with_offsets(texts, self._pattern, self._pattern)
        forced_ids = tf.fill(tf.shape(spans.values), NOT_FORCED)
        for token, token_id in self._ids.items():
            forced_ids = tf.where(spans.values == token, token_id, forced_ids)
        return Spans(spans.values, spans.row_splits, starts.values, ends.values, forced_ids)
