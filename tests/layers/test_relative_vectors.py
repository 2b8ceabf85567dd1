"""`RelativeVectors`: which vector each distance has, and which ones a row needs."""

import math
import re

import numpy as np
import pytest

from keras_bert_layers.layers import RelativeVectors


def row(distance, num_buckets, max_distance):
    """The definition, in float64; sizes are chosen such that no rounding matters."""
    middle, size = num_buckets // 2, abs(distance)
    if size > middle:
        grown = math.log(size / middle) / math.log((max_distance - 1) / middle) * (middle - 1)
        size = math.ceil(round(grown, 5)) + middle
    return min(max(int(math.copysign(size, distance)) + num_buckets, 0), 2 * num_buckets - 1)


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(8, 19), (256, 512), (7, 40), (2, 3)])
def test_rows(num_buckets, max_distance):
    part = RelativeVectors(num_buckets=num_buckets, max_distance=max_distance)
    distances = np.arange(-600, 601)
    assert part.rows(distances).tolist() == [row(distance, num_buckets, max_distance) for distance in distances]


def test_rows_without_buckets():
    assert RelativeVectors(max_distance=2).rows([-9, -2, -1, 0, 1, 2, 9]).tolist() == [0, 0, 1, 2, 3, 3, 3]


@pytest.mark.parametrize(("num_queries", "num_keys"), [(5, 5), (1, 5), (30, 30)])
def test_only_the_rows_that_are_needed(num_queries, num_keys):
    part = RelativeVectors(num_buckets=4, max_distance=9)
    part.build((None, 3, None, 4))
    vectors, indices = part.between(num_queries, num_keys)
    rows = part.rows(np.arange(-num_keys, num_queries + 1))
    np.testing.assert_array_equal(np.asarray(vectors)[indices], np.asarray(part.vectors)[rows])
    assert len(vectors) == rows[-1] - rows[0] + 1


def test_config():
    options = {"num_buckets": 4, "max_distance": 9, "normalize": True, "layer_norm_epsilon": 0.1}
    options |= {"keeps_position_embedding": True, "initializer_range": 0.1, "max_sequence_length": 7}
    config = RelativeVectors(**options).get_config()
    assert {name: config[name] for name in options} == options
    assert RelativeVectors.from_config(config).get_config() == config


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"num_buckets": 1}, "`num_buckets` must be at least 2"),
        ({"num_buckets": 8, "max_distance": 5}, "`max_distance` must be at least 6"),
        ({"max_distance": 0}, "`max_distance` must be at least 1"),
        ({"normalize": 1}, "`normalize` must be True or False"),
        ({"max_sequence_length": 0}, "`max_sequence_length` must be at least 1"),
    ],
)
def test_errors(arguments, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(f"`RelativeVectors`: {text}")):
        RelativeVectors(**arguments)
