"""Flat tokens, and encoding texts span by span."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import _engine

# One token in every vocabulary, if only [UNK]. It is encoded in place of a span whose id is given.
ONE_TOKEN_TEXT = "."
NOT_FORCED = -1


class Tokens(NamedTuple):
    """The T tokens of B texts, without the overhead of ragged tensors.

    Attributes:
        ids: int32 `[T]`.
        row_splits: int64 `[B + 1]`; text `b` has the tokens `row_splits[b]` to `row_splits[b + 1]`.
        starts: int64 `[T]`, the byte of its text at which a token starts.
        ends: int64 `[T]`, the byte after its last.
    """

    ids: tf.Tensor
    row_splits: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor

    def texts_of(self) -> tf.Tensor:
        """The index of each token's text, int64 `[T]`."""
        first_tokens = self.row_splits[1:-1]
        num_tokens = self.row_splits[-1]  # where an empty text at the end would begin
        begun = tf.scatter_nd(first_tokens[:, None], tf.ones_like(first_tokens), num_tokens[None] + 1)
        return tf.cumsum(begun)[:num_tokens]

    def gather(self, texts: tf.Tensor) -> Tokens:
        """The tokens of the texts with the given indices, in their order."""
        indices = tf.RaggedTensor.from_row_splits(tf.range(tf.size(self.ids)), self.row_splits, validate=False)
        chosen = tf.gather(indices, texts)
        ids, starts, ends = (tf.gather(part, chosen.values) for part in self.parts())
        return Tokens(ids, chosen.row_splits, starts, ends)

    def parts(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Ids, starts and ends."""
        return self.ids, self.starts, self.ends


def concatenate(batches: Sequence[Tokens]) -> Tokens:
    """The tokens of the texts of several batches, one batch after the other."""
    row_splits = [batches[0].row_splits]
    for batch in batches[1:]:
        row_splits.append(batch.row_splits[1:] + row_splits[-1][-1])
    ids, starts, ends = (tf.concat(parts, 0) for parts in zip(*(batch.parts() for batch in batches), strict=True))
    return Tokens(ids, tf.concat(row_splits, 0), starts, ends)


def replaced(tokens: Tokens, is_replaced: tf.Tensor, others: Tokens) -> Tokens:
    """The tokens of texts `[B]`, those of the texts where `is_replaced` (bool `[B]`) from `others`, in their order."""
    other_rows = tf.size(is_replaced) - 1 + tf.cumsum(tf.cast(is_replaced, tf.int32))
    return concatenate([tokens, others]).gather(tf.where(is_replaced, other_rows, tf.range(tf.size(is_replaced))))


def repaired(tokens: Tokens, texts: tf.Tensor, is_wrong: tf.Tensor, encode: Callable[[tf.Tensor], Tokens]) -> Tokens:
    """The tokens of texts `[B]`; the texts where `is_wrong` (bool `[B]`), if there are any, are encoded again."""
    return tf.cond(
        tf.reduce_any(is_wrong),
        lambda: replaced(tokens, is_wrong, encode(tf.boolean_mask(texts, is_wrong))),
        lambda: tokens,
    )


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
    spans, starts, ends, row_splits = _engine.text_engine().split(texts, boundary, kept_boundary)
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
