"""Limits the length of the texts that a served model reads."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf

# Long enough to hold any character and the three bytes before it.
_LEAST = 16
_LONGEST_CHARACTER = 4


def check_max_bytes(owner: str, max_bytes: Any) -> int | None:
    """`max_bytes` if it is None or an integer of at least 16; TypeError or ValueError otherwise."""
    return None if max_bytes is None else checks.integer(owner, "max_bytes", max_bytes, smallest=_LEAST)


def bounded_texts(texts: Any, max_bytes: int) -> tf.Tensor:
    """Cuts texts after the last whole character within their first `max_bytes` bytes, in the graph.

    Args:
        texts: strings of any shape.
        max_bytes: at least 16.

    Returns:
        Strings of the same shape.
    """
    sizes = tf.strings.length(texts)
    indices = tf.where(sizes > max_bytes)
    first = max_bytes + 1 - _LONGEST_CHARACTER
    # The four bytes up to the one after the cut: continuation bytes are cut together with their first byte.
    ends = tf.strings.substr(tf.gather_nd(texts, indices), first, _LONGEST_CHARACTER)
    ends = tf.reshape(tf.io.decode_raw(ends, tf.uint8), [-1, _LONGEST_CHARACTER])
    continues = tf.cast(tf.bitwise.bitwise_and(ends, 0xC0) == 0x80, tf.int32)
    num_cut = tf.reduce_sum(tf.math.cumprod(continues, axis=-1, reverse=True), axis=-1)
    num_cut = tf.where(num_cut == _LONGEST_CHARACTER, 0, num_cut)  # no character is that long: not UTF-8
    sizes = tf.tensor_scatter_nd_update(sizes, indices, max_bytes - num_cut)
    return tf.strings.substr(texts, tf.zeros_like(sizes), sizes)
