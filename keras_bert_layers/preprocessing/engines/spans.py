"""Spans of texts: cuts texts at patterns, encodes each span, and maps offsets back to the original text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines import engine
from keras_bert_layers.preprocessing.tokens.tokens import Tokens

# One token in every vocabulary, if only [UNK]. It is encoded in place of a span whose id is given.
ONE_TOKEN_TEXT = "."
NOT_FORCED = -1


class Spans(NamedTuple):
    """B texts cut into P spans.

    Attributes:
        texts: string `[P]`.
        row_splits: int64 `[B + 1]`, the spans of each text.
        starts: int64 `[P]`, bytes in the text.
        ends: int64 `[P]`.
        forced_ids: int32 `[P]`, the id that replaces a whole span, or -1.
    """

    texts: tf.Tensor
    row_splits: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    forced_ids: tf.Tensor


def cut(texts: tf.Tensor, boundary: str, kept_boundary: str) -> Spans:
    """Cuts texts `[B]` at every match of a pattern.

    Args:
        texts: string `[B]`, without NUL, which the engines cannot hold.
        boundary: RE2 pattern.
        kept_boundary: RE2 pattern; boundaries that match it become spans of their own.

    Returns:
        Spans, none of them empty and none with an id.
    """
    spans, starts, ends, row_splits = engine.text_engine().split(texts, boundary, kept_boundary)
    return Spans(spans, row_splits, starts, ends, tf.fill(tf.shape(spans), NOT_FORCED))


def encode_spans(spans: Spans, encode: Callable[[tf.Tensor], Tokens]) -> Tokens:
    """Encodes each span on its own, except those with a forced id; offsets count from the start of the text."""
    is_forced = spans.forced_ids != NOT_FORCED
    tokens = encode(tf.where(is_forced, ONE_TOKEN_TEXT, spans.texts))
    span = tokens.texts_of()
    forced_ids = tf.gather(spans.forced_ids, span)
    is_forced = forced_ids != NOT_FORCED
    starts = tf.gather(spans.starts, span)
    return Tokens(
        ids=tf.where(is_forced, forced_ids, tokens.ids),
        row_splits=tf.gather(tokens.row_splits, spans.row_splits),
        starts=tf.where(is_forced, starts, starts + tokens.starts),
        ends=tf.where(is_forced, tf.gather(spans.ends, span), starts + tokens.ends),
    )


def original_offsets(
    texts: tf.Tensor, sources: tf.RaggedTensor, text_of: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Maps offsets of tokens in the normalized texts to offsets in the original texts.

    A token ends after the character that its last byte comes from: one byte after the byte's position if the byte was
    copied; the character's length after it if the character was replaced, because the position is then that of its
    first byte. So a mark that was dropped after a token is not part of it, and both halves of a decomposed character
    cover the character.

    Args:
        texts: the original texts, string `[B]`.
        sources: the origins of the bytes of the normalized texts, from `normalize_with_sources`.
        text_of: int64 `[T]`, the index of each token's text.
        starts: int64 `[T]`.
        ends: int64 `[T]`, greater than `starts`.

    Returns:
        Starts and ends, int64 `[T]`.
    """
    first = tf.gather(sources.row_splits, text_of)
    last_positions = tf.gather(sources.values, first + ends - 1)
    text_starts = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64), exclusive=True)
    text_bytes = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    last_bytes = tf.gather(text_bytes, tf.gather(text_starts, text_of) + last_positions)
    return tf.gather(sources.values, first + starts), last_positions + _steps(last_bytes)


def _steps(byte: tf.Tensor) -> tf.Tensor:
    """The distance from a byte to the end of its character: the length for a lead byte, else 1; int64."""
    leads = [tf.cast(byte >= lead, tf.int64) for lead in (0xC0, 0xE0, 0xF0)]
    return 1 + leads[0] + leads[1] + leads[2]
