"""The engine that runs on the host, in Python and the library `tokenizers`, where there is no tensorflow-text.

A graph calls it through `tf.numpy_function`, so it runs in this process only, and cannot be exported.
"""

from __future__ import annotations

from collections.abc import Sequence

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing._host_characters import CharacterReplacer
from keras_bert_layers.preprocessing._host_pieces import SentencePieces, WordPieceModel

__all__ = ["IN_GRAPH", "CharacterReplacer", "SentencePieces", "WordPieceModel", "split"]

IN_GRAPH = False
_MARK = "\0"  # in no text that is split


def split(texts: tf.Tensor, boundary: str, kept_boundary: str) -> Sequence[tf.Tensor]:
    """Splits texts `[B]` at each match of an RE2 pattern: spans, their starts and ends, and row splits."""
    marked = tf.strings.regex_replace(texts, boundary, rf"{_MARK}\0{_MARK}")
    parts = tf.strings.split(marked, _MARK)  # ragged [B, (P)], text and boundary in turn
    spans, rows = parts.values, parts.value_rowids()
    lengths = tf.cast(tf.strings.length(spans), tf.int64)
    is_boundary = (tf.range(tf.size(rows, tf.int64)) - tf.gather(parts.row_splits, rows)) % 2 == 1
    is_kept = tf.where(is_boundary, tf.strings.regex_full_match(spans, kept_boundary), lengths > 0)
    text_starts = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64), exclusive=True)
    starts = tf.cumsum(lengths, exclusive=True) - tf.gather(text_starts, rows)
    num_kept = tf.concat([[0], tf.cumsum(tf.cast(is_kept, tf.int64))], 0)
    kept = [tf.boolean_mask(part, is_kept) for part in (spans, starts, starts + lengths)]
    return *kept, tf.gather(num_kept, parts.row_splits)
