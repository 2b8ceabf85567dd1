"""From texts with any axes to ragged tokens with the same axes, and from ids to tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing._tokens import Tokens


def ragged_tokens(
    encode: Callable[..., Tokens], text: Any, owner: str, *, with_offsets: bool = False
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


def tokens_of(ids: Any, tokens: tf.Tensor, *, pad_id: int) -> tf.RaggedTensor:
    """The tokens of ids `(..., tokens)` without padding.

    Args:
        ids: a tensor, dense or ragged, an array or nested lists.
        tokens: every token by its id.
        pad_id: the id of the padding.
    """
    ids = tf.ragged.constant(ids, dtype=tf.int32) if isinstance(ids, (list, tuple)) else ids
    ids = ids if isinstance(ids, tf.RaggedTensor) else tf.convert_to_tensor(ids)
    return tf.ragged.boolean_mask(tf.gather(tokens, ids), ids != pad_id)


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
