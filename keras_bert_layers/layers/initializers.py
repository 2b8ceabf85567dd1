"""Initial weights."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import keras

from keras_bert_layers._internal.shared_memory import aligned_zeros, shared_tensor

_are_replaced = contextvars.ContextVar("_are_replaced", default=False)


@contextlib.contextmanager
def replaced_weights() -> Iterator[None]:
    """Makes new weights zeros: a checkpoint replaces all of them, and drawing random values takes time."""
    token = _are_replaced.set(True)
    try:
        yield
    finally:
        _are_replaced.reset(token)


def truncated_normal(initializer_range: float) -> keras.initializers.Initializer:
    """A new initializer with the distribution of BERT's initial weights.

    Each weight needs its own: Keras seeds an initializer when it is made, so two weights of equal shape that share an
    instance get equal values.

    Args:
        initializer_range: standard deviation; draws further than two of them from 0 are drawn again.

    Returns:
        The initializer.

    References:
        `create_initializer` in google-research/bert, modeling.py.
    """
    if _are_replaced.get():
        return _ReplacedZeros()
    return keras.initializers.TruncatedNormal(stddev=initializer_range)


class _ReplacedZeros(keras.initializers.Zeros):
    """Zeros that take no memory on TensorFlow, so that a model is not in memory before its weights are."""

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """Zeros of a shape and a dtype."""
        if dtype != "float32" or keras.backend.backend() != "tensorflow":
            return super().__call__(shape, dtype)
        return shared_tensor(aligned_zeros(tuple(shape)))
