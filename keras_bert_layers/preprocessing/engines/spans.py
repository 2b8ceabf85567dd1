"""Spans of texts: cuts texts at patterns, encodes each span, and maps offsets back to the original text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines import engine
from keras_bert_layers.preprocessing.tokens.markers import WHITESPACE, any_of, contains
from keras_bert_layers.preprocessing.tokens.tokens import Tokens, joined, repaired, rows_of

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


class SpecialTokens:
    """Finds special tokens in raw text, the longest at each place, and encodes the text between them.

    Args:
        ids: the tokens and their ids.
        stripping: those of them that take the whitespace before them.
        trims: whether their offsets leave out this whitespace.
        keeps_one: whether they keep it at the beginning of a text, if it is one character.

    Attributes:
        pattern: RE2 pattern of all tokens; empty for none.
    """

    def __init__(
        self, ids: Mapping[str, int], stripping: Sequence[str] = (), *, trims: bool = False, keeps_one: bool = False
    ):
        self._ids, self._trims, self._keeps_one = dict(ids), trims, keeps_one
        self._stripping = {*stripping}
        self.pattern = any_of(ids)
        spaces = f"[{WHITESPACE}]*"
        ordered = sorted(ids, key=len, reverse=True)
        self._cut = "|".join((spaces if token in stripping else "") + any_of([token]) for token in ordered)

    def encode(
        self,
        texts: tf.Tensor,
        encode: Callable[[tf.Tensor, tf.Tensor], Tokens],
        is_first: tf.Tensor | bool = True,
    ) -> Tokens:
        """The tokens of texts `[B]`.

        Args:
            texts: the texts.
            encode: encodes, with offsets, what is not special, given whether it begins its text.
            is_first: whether the texts begin theirs, bool `[B]`.
        """
        is_first = tf.broadcast_to(is_first, tf.shape(texts))
        if not self.pattern:
            return encode(texts, is_first)
        spans = tf.cond(
            tf.reduce_any(contains(texts, self.pattern)), lambda: self._spans(texts), lambda: _whole_texts(texts)
        )
        is_forced = spans.forced_ids != NOT_FORCED
        text = rows_of(spans.row_splits)
        tokens = encode(spans.texts, (spans.starts == 0) & tf.gather(is_first, text))

        def one_each(places: tf.Tensor) -> Tokens:
            lengths = tf.gather(spans.ends - spans.starts, places)
            splits = tf.range(tf.size(places, tf.int64) + 1)
            return Tokens(tf.gather(spans.forced_ids, places), splits, tf.zeros_like(lengths), lengths)

        tokens = repaired(tokens, tf.range(tf.size(is_forced)), is_forced, one_each)
        offset = tf.gather(spans.starts, tokens.texts_of())
        row_splits = tf.gather(tokens.row_splits, spans.row_splits)
        return Tokens(tokens.ids, row_splits, tokens.starts + offset, tokens.ends + offset)

    def _spans(self, texts: tf.Tensor) -> Spans:
        """Splits texts `[B]` into special tokens with their ids, and the text between them."""
        spans = cut(tf.strings.regex_replace(texts, r"\x00", "\x01"), self._cut, self._cut)
        has_nul = tf.reduce_any(contains(texts, r"\x00"))
        span_texts = tf.cond(has_nul, lambda: _cut_bytes(texts, spans), lambda: spans.texts)
        token = tf.strings.regex_replace(spans.texts, f"^[{WHITESPACE}]*", "")
        forced_ids = spans.forced_ids
        for special, token_id in self._ids.items():
            found = token if special in self._stripping else spans.texts
            forced_ids = tf.where(found == special, token_id, forced_ids)
        starts = spans.starts
        if self._trims:
            one = tf.strings.regex_replace(spans.texts, f"^[{WHITESPACE}]{{2,}}", "")
            kept = tf.where(starts == 0, one, token) if self._keeps_one else token
            starts = tf.where(forced_ids == NOT_FORCED, starts, spans.ends - tf.cast(tf.strings.length(kept), tf.int64))
        texts = tf.where(forced_ids == NOT_FORCED, span_texts, "")
        return spans._replace(texts=texts, starts=starts, forced_ids=forced_ids)


def _cut_bytes(texts: tf.Tensor, spans: Spans) -> tf.Tensor:
    """The spans of texts `[B]` byte by byte, with their NULs. A copy of the text for each would be quadratic."""
    row_splits = tf.concat([[0], tf.cumsum(spans.ends - spans.starts)], 0)
    return joined(tf.strings.bytes_split(texts).values, row_splits)


def _whole_texts(texts: tf.Tensor) -> Spans:
    """Each of texts `[B]` as one span."""
    ends = tf.cast(tf.strings.length(texts), tf.int64)
    row_splits = tf.range(tf.size(texts, tf.int64) + 1)
    return Spans(texts, row_splits, tf.zeros_like(ends), ends, tf.fill(tf.shape(texts), NOT_FORCED))


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
