"""Random numbers that depend only on a row's seed and a position in the row, not on the rest of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor

# SplitMix64: the step of its counter, and the two multipliers of its mixing.
STEP = 0x9E3779B97F4A7C15
MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def row_seeds(seed: Tensor, num_rows: tf.Tensor) -> tf.Tensor:
    """Makes one seed per row, uint64 `(rows,)`.

    Args:
        seed: an int64 scalar, from which a seed for every row is made; or int64 `(rows,)`, one for each.
        num_rows: the number of rows.
    """
    seed = tf.cast(tf.convert_to_tensor(seed, dtype_hint=tf.int64), tf.uint64)  # negative numbers become large ones
    if seed.shape.rank == 0:
        return _mixed(seed) + tf.cast(tf.range(num_rows), tf.uint64)
    return seed


def random_bits(seeds: tf.Tensor, num_positions: Tensor, *, stream: int) -> tf.Tensor:
    """63 random bits for each row and position.

    Args:
        seeds: from `row_seeds`, `(rows,)`.
        num_positions: the number of positions in a row; a larger number does not change the first ones.
        stream: selects one of many independent streams of bits for the same seeds.

    Returns:
        int64 `(rows, positions)`, at least 0.

    References:
        Steele, Lea and Flood 2014, https://doi.org/10.1145/2714064.2660195, section 5 (SplitMix64). The generators
        of TensorFlow take one seed for a whole tensor.
    """
    states = _mixed(seeds + _constant(STEP) * _constant(stream + 1))[:, None]
    counts = tf.cast(tf.range(num_positions), tf.uint64) + _constant(1)
    bits = _mixed(states + counts * _constant(STEP))
    return tf.cast(tf.bitwise.right_shift(bits, _constant(1)), tf.int64)


def uniform(seeds: tf.Tensor, num_positions: Tensor, *, stream: int) -> tf.Tensor:
    """Numbers in [0, 1), float32 `(rows, positions)`; arguments as for `random_bits`."""
    bits = random_bits(seeds, num_positions, stream=stream)
    return tf.cast(tf.bitwise.right_shift(bits, 39), tf.float32) / 2**24  # as many bits as float32 holds


def integers(seeds: tf.Tensor, num_positions: Tensor, *, below: int, stream: int) -> tf.Tensor:
    """Integers from 0 to `below - 1`, less than 2**31 of them, int32 `(rows, positions)`; as for `random_bits`."""
    bits = tf.bitwise.right_shift(random_bits(seeds, num_positions, stream=stream), 32)  # 31 of them
    return tf.cast(tf.bitwise.right_shift(bits * below, 31), tf.int32)


def mask_seeds(seed: Tensor, epoch: Tensor, rows: Tensor) -> Any:
    """Makes seeds for the masks of rows, from three numbers alone.

    Args:
        seed: the seed of the training, an int or int64 scalar.
        epoch: the number of the epoch, an int or int64 scalar.
        rows: int64 `(rows,)`, the numbers of the rows in the data; a NumPy array, or a tensor.

    Returns:
        int64 `(rows,)`, for `MaskedLMGenerator(...)(inputs, seed=...)`: an array for an array, a tensor with the
        same values for a tensor.
    """
    in_numpy = isinstance(rows, np.ndarray)

    def as_bits(value: Any) -> Any:
        # One-dimensional, as NumPy warns where a single number overflows.
        value = np.reshape(value, -1) if in_numpy else tf.reshape(tf.cast(value, tf.int64), [-1])
        return value.astype(np.int64).view(np.uint64) if in_numpy else tf.cast(value, tf.uint64)

    state = _mixed(as_bits(seed))
    for number in (epoch, rows):
        state = _mixed(state + (as_bits(number) + np.uint64(1)) * np.uint64(STEP))
    return state.view(np.int64) if in_numpy else tf.bitcast(state, tf.int64)


def _mixed(state: Any) -> Any:
    """Mixes 64 bits one-to-one, so that neighbouring states give unrelated values; an array or a tensor."""
    operations = np if isinstance(state, np.ndarray) else tf.bitwise
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        state = operations.bitwise_xor(state, operations.right_shift(state, np.uint64(shift))) * np.uint64(multiplier)
    return operations.bitwise_xor(state, operations.right_shift(state, np.uint64(31)))


def _constant(value: int) -> tf.Tensor:
    return tf.constant(value, tf.uint64)
