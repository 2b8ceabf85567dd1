"""Assertions in graph."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal.lazy import tf


def asserted(values: Any, condition: tf.Tensor, message: list[Any]) -> Any:
    """The same values, computed after an assertion: an error in graph, or eagerly at once, unless it holds.

    Args:
        values: a tensor or a ragged tensor.
        condition: bool `()`.
        message: strings and tensors, which the error shows.
    """
    check = tf.debugging.Assert(condition, message)
    with tf.control_dependencies([] if check is None else [check]):
        return tf.identity(values)
