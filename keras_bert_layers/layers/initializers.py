"""Initial weights: BERT's truncated normal distribution, and zeros without memory where a checkpoint replaces them."""

import contextlib
import contextvars
import math
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras.initializers import Initializer

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
    instance get equal values. On JAX and torch they are drawn by NumPy, and equal for equal seeds.

    Args:
        initializer_range: standard deviation; values further than two of them from 0 are drawn again.

    Returns:
        The initializer.

    References:
        `create_initializer` in google-research/bert, modeling.py.
    """
    if _are_replaced.get():
        return _ReplacedZeros()
    kind = keras.initializers.TruncatedNormal if keras.backend.backend() == "tensorflow" else _DrawnByNumPy
    return kind(stddev=initializer_range)


def _written_as_keras_own(initializer: type[Initializer]) -> type[Initializer]:
    """Lets Keras write an initializer as the one of Keras that it is made of, which any program reads; a decorator."""
    initializer.__module__, initializer.__name__ = "keras.initializers", initializer.__bases__[0].__name__
    return initializer


@_written_as_keras_own
class _DrawnByNumPy(keras.initializers.TruncatedNormal):
    """The same distribution, drawn faster: JAX would compile a program for each shape, and torch inverts `erf`."""

    def __call__(self, shape: Any, dtype: str | keras.DTypePolicy | None = None) -> Any:
        """Random values of a shape and a dtype."""
        draws = np.random.default_rng(self.seed)
        values = draws.standard_normal(tuple(shape), np.float32)
        while (is_far := np.abs(values) > 2).any():
            values[is_far] = draws.standard_normal(np.count_nonzero(is_far), np.float32)
        return keras.ops.convert_to_tensor(np.float32(self.stddev) * values, dtype)


@_written_as_keras_own
class _ReplacedZeros(keras.initializers.Zeros):
    """Zeros that take no memory on TensorFlow, so that a model is not in memory before its weights are."""

    def __call__(self, shape: Any, dtype: str | keras.DTypePolicy | None = None) -> Any:
        """Zeros of a shape and a dtype."""
        if keras.backend.backend() == "jax":  # it would compile a program for each shape
            return keras.ops.convert_to_tensor(np.zeros(shape, np.float32), dtype)
        if dtype != "float32" or keras.backend.backend() != "tensorflow":
            return super().__call__(shape, dtype)
        return shared_tensor(aligned_zeros(tuple(shape)))


_ALIGNMENT = 64  # bytes; TensorFlow does not share memory that is aligned to less


def aligned_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Float32 zeros that `shared_tensor` can share; they take no memory until they are written.

    Examples:
        >>> aligned_zeros((2, 3)).ctypes.data % 64
        0
    """
    num_bytes = 4 * math.prod(shape)
    memory = np.zeros(num_bytes + _ALIGNMENT, np.uint8)  # the kernel gives untouched pages no memory
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + num_bytes].view(np.float32).reshape(shape)


def shared_tensor(array: np.ndarray) -> Any:
    """A tensor that owns the memory of an array of `aligned_zeros`; the array itself, if the backend copies anyway.

    TensorFlow's own conversion copies twice. The array must not change afterwards.
    """
    if keras.backend.backend() != "tensorflow":
        return array
    import tensorflow as tf

    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
