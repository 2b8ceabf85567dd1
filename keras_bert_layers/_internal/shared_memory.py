"""Arrays of NumPy that a backend takes over without a copy."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np

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

    TensorFlow's own conversion copies twice. The array must not be changed any more.
    """
    if keras.backend.backend() != "tensorflow":
        return array
    import tensorflow as tf

    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
