"""Random numbers that follow from a row's seed and a place in the row, whatever else is in the batch."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal.lazy import tf

# SplitMix64: the step of its counter, and the two multipliers of its mixing.
STEP = 0x9E3779B97F4A7C15
MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def row_seeds(seed: Any, num_rows: tf.Tensor) -> tf.Tensor:
    """One seed a row, uint64 `(rows,)`.

    Args:
        seed: an int64 scalar, from which every row gets a seed of its own; or int64 `(rows,)`, one for each.
        num_rows: how many rows there are.
    """
    seed = tf.cast(tf.convert_to_tensor(seed, dtype_hint=tf.int64), tf.uint64)  # negative numbers become large ones
    if seed.shape.rank == 0:
        return _mixed(seed) + tf.cast(tf.range(num_rows), tf.uint64)
    return seed


def random_bits(seeds: tf.Tensor, num_places: Any, *, stream: int) -> tf.Tensor:
    """63 random bits for each row and place.

    Args:
        seeds: what `row_seeds` gives, `(rows,)`.
        num_places: places in a row, int; more of them do not change the first ones.
        stream: another number gives other bits for the same seeds.

    Returns:
        int64 `(rows, places)`, at least 0.

    References:
        Steele, Lea and Flood 2014, https://doi.org/10.1145/2714064.2660195, section 5 (SplitMix64). The generators
        of TensorFlow take one seed for a whole tensor.
    """
    states = _mixed(seeds + _constant(STEP) * _constant(stream + 1))[:, None]
    counts = tf.cast(tf.range(num_places), tf.uint64) + _constant(1)
    bits = _mixed(states + counts * _constant(STEP))
    return tf.cast(tf.bitwise.right_shift(bits, _constant(1)), tf.int64)


def uniform(seeds: tf.Tensor, num_places: Any, *, stream: int) -> tf.Tensor:
    """Numbers in [0, 1), float32 `(rows, places)`; arguments as for `random_bits`."""
    bits = random_bits(seeds, num_places, stream=stream)
    return tf.cast(tf.bitwise.right_shift(bits, 39), tf.float32) / 2**24  # as many bits as float32 holds


def integers(seeds: tf.Tensor, num_places: Any, *, below: int, stream: int) -> tf.Tensor:
    """Integers from 0 to `below - 1`, less than 2**31 of them, int32 `(rows, places)`; as for `random_bits`."""
    bits = tf.bitwise.right_shift(random_bits(seeds, num_places, stream=stream), 32)  # 31 of them
    return tf.cast(tf.bitwise.right_shift(bits * below, 31), tf.int32)


def _mixed(state: tf.Tensor) -> tf.Tensor:
    """A one-to-one map of 64 bits that looks random: neighbours come out far apart."""
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        state = tf.bitwise.bitwise_xor(state, tf.bitwise.right_shift(state, _constant(shift))) * _constant(multiplier)
    return tf.bitwise.bitwise_xor(state, tf.bitwise.right_shift(state, _constant(31)))


def _constant(value: int) -> tf.Tensor:
    return tf.constant(value, tf.uint64)
