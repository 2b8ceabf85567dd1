"""`Tokens`: flat tokens of a batch of texts, and how texts with any axes become ragged ids."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Strings, Tensor


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
        return rows_of(self.row_splits)

    def gather(self, texts: tf.Tensor) -> Tokens:
        """The tokens of the texts with the given indices, in their order."""
        indices = tf.RaggedTensor.from_row_splits(tf.range(tf.size(self.ids)), self.row_splits, validate=False)
        chosen = tf.gather(indices, texts)
        ids, starts, ends = (tf.gather(part, chosen.values) for part in self.parts())
        return Tokens(ids, chosen.row_splits, starts, ends)

    def parts(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Ids, starts and ends."""
        return self.ids, self.starts, self.ends


def rows_of(row_splits: tf.Tensor) -> tf.Tensor:
    """The row of each value, `[values]`, by the splits of B rows, `[B + 1]`, of whose type it is.

    TensorFlow's `value_rowids`, `reduce_join` and `repeat` make a matrix of B columns as long as the longest row.
    """
    firsts = row_splits[1:-1]
    num_values = row_splits[-1]  # where an empty row at the end would begin
    begun = tf.scatter_nd(firsts[:, None], tf.ones_like(firsts), num_values[None] + 1)
    return tf.cumsum(begun)[:num_values]


def rows_of_lengths(lengths: tf.Tensor) -> tf.Tensor:
    """The same by the lengths of the rows, integers `[B]`."""
    return rows_of(tf.concat([[0], tf.cumsum(tf.cast(lengths, tf.int64))], 0))


def num_bytes(codes: tf.Tensor) -> tf.Tensor:
    """How many bytes of UTF-8 characters have, int64, by their code points."""
    least = (tf.cast(codes >= limit, tf.int64) for limit in (0x80, 0x800, 0x10000))
    return sum(least, tf.ones_like(codes, tf.int64))


def joined(parts: tf.Tensor, row_splits: tf.Tensor, separator: str = "") -> tf.Tensor:
    """The strings of each row as one, string `[B]`."""
    return tf.strings.unsorted_segment_join(parts, rows_of(row_splits), tf.size(row_splits) - 1, separator)


def joined_on_last_axis(parts: tf.Tensor | tf.RaggedTensor, separator: str = "") -> tf.Tensor | tf.RaggedTensor:
    """The strings of the last axis as one, `(...)`, dense or ragged."""
    if not isinstance(parts, tf.RaggedTensor):
        return tf.strings.reduce_join(parts, axis=-1, separator=separator)
    if isinstance(parts.values, tf.RaggedTensor):
        return parts.with_values(joined_on_last_axis(parts.values, separator))
    return joined(parts.values, parts.row_splits, separator)


def concatenate(batches: Sequence[Tokens]) -> Tokens:
    """The tokens of the texts of several batches, one batch after the other."""
    row_splits = [batches[0].row_splits]
    for batch in batches[1:]:
        row_splits.append(batch.row_splits[1:] + row_splits[-1][-1])
    ids, starts, ends = (tf.concat(parts, 0) for parts in zip(*(batch.parts() for batch in batches), strict=True))
    return Tokens(ids, tf.concat(row_splits, 0), starts, ends)


def replaced(tokens: Tokens, is_replaced: tf.Tensor, others: Tokens, chosen: tf.Tensor | None = None) -> Tokens:
    """The tokens of texts `[B]`, those of the texts where `is_replaced` (bool `[B]`) from `others`, in their order.

    Args:
        tokens: those of all texts.
        is_replaced: the texts that `others` has, one after the other.
        others: their tokens.
        chosen: the indices of the texts that are wanted; all without it.
    """
    other_rows = tf.size(is_replaced) - 1 + tf.cumsum(tf.cast(is_replaced, tf.int32))
    rows = tf.where(is_replaced, other_rows, tf.range(tf.size(is_replaced)))
    return concatenate([tokens, others]).gather(rows if chosen is None else tf.gather(rows, chosen))


def repaired(
    tokens: Tokens,
    texts: tf.Tensor,
    is_wrong: tf.Tensor,
    encode: Callable[[tf.Tensor], Tokens],
    chosen: tf.Tensor | None = None,
) -> Tokens:
    """The tokens of texts `[B]`; the texts where `is_wrong` (bool `[B]`), if there are any, are encoded again.

    Args:
        tokens: those of all texts.
        texts: the texts, or what stands for each.
        is_wrong: the texts that are encoded again.
        encode: gives the tokens of some of `texts`.
        chosen: the indices of the texts that are wanted; all without it.
    """
    return tf.cond(
        tf.reduce_any(is_wrong),
        lambda: replaced(tokens, is_wrong, encode(tf.boolean_mask(texts, is_wrong)), chosen),
        lambda: tokens if chosen is None else tokens.gather(chosen),
    )


def ragged_tokens(
    encode: Callable[..., Tokens], text: Strings, owner: str, *, with_offsets: bool = False
) -> tuple[tf.RaggedTensor | tf.Tensor, ...]:
    """The ids of each text, int32, and `with_offsets` also the starts and the ends.

    Args:
        encode: maps texts `[B]` and `with_offsets` to tokens.
        text: strings with any axes, dense or ragged.
        owner: the tokenizer's class, for errors.
        with_offsets: whether to compute the offsets.
    """
    texts, restore = _flatten(text, owner)
    tokens = encode(texts, with_offsets=with_offsets)
    offsets = (tf.cast(tokens.starts, tf.int32), tf.cast(tokens.ends, tf.int32)) if with_offsets else ()
    return tuple(
        restore(tf.RaggedTensor.from_row_splits(part, tokens.row_splits, validate=False))
        for part in (tokens.ids, *offsets)
    )


def tokens_of(ids: Tensor, tokens: tf.Tensor, *, pad_id: int) -> tf.RaggedTensor:
    """The tokens of ids `(..., tokens)` without padding.

    Args:
        ids: a tensor, dense or ragged, an array or nested lists.
        tokens: every token by its id.
        pad_id: the id of the padding.
    """
    ids = tf.ragged.constant(ids, dtype=tf.int32) if isinstance(ids, (list, tuple)) else ids
    if not isinstance(ids, tf.RaggedTensor):
        ids = tf.convert_to_tensor(ids)
        if ids.shape.rank < 2:
            return tf.boolean_mask(tf.gather(tokens, ids), ids != pad_id)
        ids = tf.RaggedTensor.from_tensor(ids)
    rows: tf.RaggedTensor = ids
    if rows.values.shape.rank > 1:
        return rows.with_values(tokens_of(rows.values, tokens, pad_id=pad_id))
    is_kept = rows.values != pad_id
    num_kept = tf.concat([[0], tf.cumsum(tf.cast(is_kept, tf.int64))], 0)
    kept = tf.boolean_mask(tf.gather(tokens, rows.values), is_kept)
    return tf.RaggedTensor.from_row_splits(kept, tf.gather(num_kept, rows.row_splits), validate=False)


def _flatten(text: Any, owner: str) -> tuple[tf.Tensor, Callable[[tf.RaggedTensor], Any]]:
    """Flattens `text` to one axis of strings, and returns a function that gives ragged tokens the axes of `text`."""
    if isinstance(text, tf.RaggedTensor):
        texts, restore = _flatten(text.flat_values, owner)
        return texts, lambda tokens: text.with_flat_values(restore(tokens))
    try:
        text = tf.convert_to_tensor(text, tf.string)
    except (TypeError, ValueError) as error:
        cure = "Pass a list, an array or a tensor of strings; rows of different lengths as a tf.RaggedTensor."
        raise TypeError(checks.message(owner, "text", "be strings", text, cure)) from error
    if text.shape.rank is None:
        raise ValueError(checks.message(owner, "text", "have a known number of axes", text))
    if text.shape.rank == 0:
        return text[None], lambda tokens: tokens.values
    if text.shape.rank == 1:
        return text, lambda tokens: tokens
    return _flatten(tf.RaggedTensor.from_tensor(text, ragged_rank=text.shape.rank - 1), owner)


class TracedEncoding:
    """Encodes texts in functions of their own, so that each is traced once, however often and wherever it is called.

    Args:
        encode: maps texts `[B]` and `with_offsets` to tokens.
    """

    def __init__(self, encode: Callable[..., Tokens]):
        signature = [tf.TensorSpec([None], tf.string)]
        self._functions = {
            with_offsets: tf.function(
                functools.partial(encode, with_offsets=with_offsets), input_signature=signature, autograph=False
            )
            for with_offsets in (False, True)
        }

    def __call__(self, texts: tf.Tensor, *, with_offsets: bool) -> Tokens:
        """The tokens of texts `[B]`; their starts and ends are valid only `with_offsets`."""
        tokens = self._functions[with_offsets](texts)
        num_texts = texts.shape[0]
        tokens.row_splits.set_shape([None if num_texts is None else num_texts + 1])
        return tokens
