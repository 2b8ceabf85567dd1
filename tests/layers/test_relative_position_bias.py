import json
import math
import re

import numpy as np
import pytest

from keras_bert_layers.layers import RelativePositionBias, SelfAttention


def bucket(distance, num_buckets, max_distance):
    """T5's bucket of a distance, written from the paper."""
    half = num_buckets // 2
    first, size = (half, distance) if distance > 0 else (0, -distance)
    single = half // 2
    if size < single:
        return first + size
    share = math.log(size / single) / math.log(max_distance / single)
    return first + min(half - 1, single + math.floor(share * (half - single) + 1e-6))  # a share may be a whole number


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (8, 20), (4, 2)])
def test_buckets(num_buckets, max_distance):
    distances = np.arange(-300, 301)
    found = RelativePositionBias(num_buckets=num_buckets, max_distance=max_distance).buckets(distances)
    assert found.tolist() == [bucket(distance, num_buckets, max_distance) for distance in distances]


@pytest.mark.peers
def test_buckets_of_transformers(transformers, torch):
    from transformers.models.t5.modeling_t5 import T5Attention

    distances = np.arange(-300, 301)
    theirs = T5Attention._relative_position_bucket(torch.tensor(distances), True, 32, 128)
    assert RelativePositionBias().buckets(distances).tolist() == theirs.tolist()


def test_bias(draw):
    part = RelativePositionBias(num_buckets=8, max_distance=5, initializer_range=0.4)
    part.build((None, 3, None, 4))
    bias, numbers = np.asarray(part.bias(2, 9)), np.asarray(part.bucket_bias)
    assert bias.shape == (3, 2, 9)
    for query in range(2):
        for key in range(9):
            np.testing.assert_array_equal(bias[:, query, key], numbers[bucket(key - query, 8, 5)])


def test_attention_contract(check_layer, draw, tmp_path):
    options = {"num_buckets": 8, "max_distance": 9, "name": "positions"}
    check_layer(
        lambda **kwargs: SelfAttention(3, positions=RelativePositionBias(**options), **kwargs),
        {"hidden": draw(2, 5, 12)},
        output_shape=(2, 5, 12),
        num_weights=5,
        tmp_path=tmp_path,
    )


def test_config():
    config = RelativePositionBias(num_buckets=8, max_distance=9, initializer_range=0.1).get_config()
    assert json.loads(json.dumps(config)) == config
    assert RelativePositionBias.from_config(config).get_config() == config
    assert (config["num_buckets"], config["max_distance"], config["initializer_range"]) == (8, 9, 0.1)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"num_buckets": 6}, "`num_buckets` must be a multiple of 4"),
        ({"num_buckets": 0}, "`num_buckets` must be at least 1"),
        ({"max_distance": 8}, "`max_distance` must be at least 9"),
        ({"initializer_range": 0}, "`initializer_range` must be greater than 0"),
    ],
)
def test_errors(arguments, text):
    with pytest.raises(ValueError, match=re.escape(f"`RelativePositionBias`: {text}")):
        RelativePositionBias(**arguments)
