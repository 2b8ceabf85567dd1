"""`Generator`, the random numbers of `tf.random.Generator`."""

from __future__ import annotations

import numpy as np

from keras_bert_layers._internal.numpy_tensorflow.tensors import Tensor
from keras_bert_layers._internal.numpy_tensorflow.types import Kind, Sizes

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS, _BITS = 10, 2**32 - 1
# Counters that TensorFlow sets aside for each number.
_RESERVED = 256


class Generator:
    """Random integers, the same as TensorFlow's: Philox with ten rounds, which counts from the seed.

    Args:
        state: the counter, 128 bits, and the key, 64 bits above them.

    References:
        Salmon et al. 2011, https://doi.org/10.1145/2063384.2063405.
    """

    def __init__(self, state: int):
        self._counter, self._key = state & (2**128 - 1), state >> 128

    @classmethod
    def from_seed(cls, seed: int) -> Generator:
        """The generator of a seed."""
        return cls(int(seed) & (2**192 - 1))

    def uniform_full_int(self, shape: Sizes, dtype: Kind = "int64") -> Tensor:
        """One integer, int64 `()`."""
        if list(shape):
            raise NotImplementedError(f"random integers of shape {list(shape)}")
        a, b, c, d = (self._counter >> bits & _BITS for bits in (0, 32, 64, 96))
        key = [self._key & _BITS, self._key >> 32]
        for _ in range(_ROUNDS):
            first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
            a, b, c, d = second >> 32 ^ b ^ key[0], second & _BITS, first >> 32 ^ d ^ key[1], first & _BITS
            key = [(part + step) & _BITS for part, step in zip(key, _STEPS, strict=True)]
        self._counter += _RESERVED
        return Tensor(np.array(a | b << 32, np.uint64).astype(np.int64))


def set_seed(seed: int) -> None:
    """Does nothing: no random number here depends on it."""
