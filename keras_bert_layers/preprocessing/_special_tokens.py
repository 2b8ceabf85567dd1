"""Special tokens written in raw text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing._tokens import Spans, cut


class SpecialTokens:
    """Finds special tokens in raw text, also inside a word.

    transformers' fast BertTokenizer has them as "added tokens", which it finds in the text before any normalization, in
    upper case only.

    Args:
        ids: token, such as "[SEP]" -> id.
    """

    def __init__(self, ids: Mapping[str, int]):
        self._ids = dict(ids)
        self._pattern = "|".join(re.escape(token) for token in self._ids)

    def has_any(self, texts: tf.Tensor) -> tf.Tensor:
        """Whether a text contains a special token, bool `[B]`."""
        # \C is a byte; a dot would stop at bytes that are not UTF-8.
        return tf.strings.regex_full_match(texts, rf"\C*(?:{self._pattern})\C*")

    def cut(self, texts: tf.Tensor) -> Spans:
        """Splits texts `[B]` into spans: special tokens with their ids, and the text between them."""
        # "Start of heading" is dropped as NUL is, and is one byte too.
        texts = tf.strings.regex_replace(texts, r"\x00", "\x01")
        spans = cut(texts, self._pattern, self._pattern)
        forced_ids = spans.forced_ids
        for token, token_id in self._ids.items():
            forced_ids = tf.where(spans.texts == token, token_id, forced_ids)
        return spans._replace(forced_ids=forced_ids)
