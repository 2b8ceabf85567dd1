"""`RelativePositionBias`, `RotaryPositions` and `SinusoidalPositions` beside their definitions."""

import json
import math
import re

import numpy as np
import pytest

from keras_bert_layers.layers import (
    BertEmbedding,
    RelativePositionBias,
    RotaryPositions,
    SelfAttention,
    SinusoidalPositions,
)

# float32 rotations, against complex numbers in float64.
FLOAT32 = 1e-6
# Scores of two rotated vectors of length 3: tables are rounded to float32.
SHIFTED = 1e-5
# Sines of float64 angles, rounded to float32.
FLOAT32_SINUSOIDAL = 1e-7


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
    options = {"keeps_position_embedding": True, "initializer_range": 0.1}
    config = RelativePositionBias(num_buckets=8, max_distance=9, **options).get_config()
    assert json.loads(json.dumps(config)) == config
    assert RelativePositionBias.from_config(config).get_config() == config
    assert (config["num_buckets"], config["max_distance"]) == (8, 9)
    assert {name: config[name] for name in options} == options


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"num_buckets": 6}, "`num_buckets` must be a multiple of 4"),
        ({"num_buckets": 0}, "`num_buckets` must be at least 1"),
        ({"max_distance": 8}, "`max_distance` must be at least 9"),
        ({"keeps_position_embedding": 1}, "`keeps_position_embedding` must be True or False"),
        ({"initializer_range": 0}, "`initializer_range` must be greater than 0"),
    ],
)
def test_errors(arguments, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(f"`RelativePositionBias`: {text}")):
        RelativePositionBias(**arguments)


def test_values(draw):
    heads = draw(2, 3, 5, 6)
    rotated = np.asarray(RotaryPositions(base=50.0).rotated(heads))
    for position in range(5):
        for pair in range(3):
            point = heads[..., position, 2 * pair] + 1j * heads[..., position, 2 * pair + 1]
            turned = point * np.exp(1j * position * 50.0 ** (-2 * pair / 6))
            np.testing.assert_allclose(rotated[..., position, 2 * pair], turned.real, atol=FLOAT32)
            np.testing.assert_allclose(rotated[..., position, 2 * pair + 1], turned.imag, atol=FLOAT32)


def test_values_of_halves(draw):
    """Rotation matrices of the columns i and i + 3."""
    heads = draw(2, 3, 5, 6)
    rotated = np.asarray(RotaryPositions(base=50.0, halves=True).rotated(heads))
    for position in range(5):
        matrix = np.zeros((6, 6))
        for pair in range(3):
            angle = position / 50.0 ** (pair / 3)
            cosine, sine = math.cos(angle), math.sin(angle)
            matrix[np.ix_((pair, pair + 3), (pair, pair + 3))] = [[cosine, -sine], [sine, cosine]]
        np.testing.assert_allclose(rotated[:, :, position], heads[:, :, position] @ matrix.T, atol=FLOAT32)


def test_interpolated_positions_are_fractions_of_positions(draw):
    heads = draw(2, 3, 5, 8)
    plain, half = RotaryPositions(halves=True), RotaryPositions(halves=True, interpolation=2.0)
    np.testing.assert_array_equal(np.asarray(half.tables(9, 8))[:, ::2], np.asarray(plain.tables(5, 8)))
    assert np.abs(np.asarray(half.rotated(heads)) - np.asarray(plain.rotated(heads))).max() > 0.1


def test_halves_are_pairs_in_another_order(draw):
    heads, order = draw(2, 3, 5, 8), [0, 2, 4, 6, 1, 3, 5, 7]
    halves = np.asarray(RotaryPositions(halves=True).rotated(heads[..., order]))
    np.testing.assert_array_equal(halves, np.asarray(RotaryPositions().rotated(heads))[..., order])


@pytest.mark.parametrize("halves", [False, True])
def test_scores_see_distances_only(halves, draw):
    """Also far from the start, where angles in float32 would be off."""
    part = RotaryPositions(max_sequence_length=600, halves=halves)
    query, key = np.broadcast_to(draw(2, 1, 1, 1, 8), (2, 1, 1, 600, 8)).astype("float32")
    query, key = (np.asarray(part.rotated(heads), "float64")[0, 0] for heads in (query, key))
    scores = query @ key.T
    for distance in (0, 1, 7, 80):
        same = np.diagonal(scores, distance)
        np.testing.assert_allclose(same, same[0], atol=SHIFTED)
    assert np.abs(np.diagonal(scores, 0)[0] - np.diagonal(scores, 1)[0]) > 0.01


@pytest.mark.parametrize("halves", [False, True])
def test_rotary_attention_contract(halves, check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: SelfAttention(3, positions=RotaryPositions(halves=halves), initializer_range=0.4, **kwargs),
        {"hidden": draw(2, 5, 12)},
        output_shape=(2, 5, 12),
        num_weights=4,
        tmp_path=tmp_path,
    )


def test_rotary_config():
    config = RotaryPositions(base=50, halves=True, interpolation=1.5, max_sequence_length=7, name="turns").get_config()
    assert json.loads(json.dumps(config)) == config
    assert RotaryPositions.from_config(config).get_config() == config
    assert (config["base"], config["halves"], config["max_sequence_length"]) == (50.0, True, 7)
    assert config["interpolation"] == 1.5


def test_rotary_errors(draw):
    with pytest.raises(ValueError, match=re.escape("`RotaryPositions`: `base` must be greater than 0")):
        RotaryPositions(base=0)
    with pytest.raises(ValueError, match=re.escape("`max_sequence_length` must be at least 1")):
        RotaryPositions(max_sequence_length=0)
    with pytest.raises(TypeError, match=re.escape("`halves` must be True or False. Received: halves=1")):
        RotaryPositions(halves=1)
    text = "`heads` must have at most `max_sequence_length` (4) positions. Received: heads=<5 positions>"
    with pytest.raises(ValueError, match=re.escape(text)):
        RotaryPositions(max_sequence_length=4).rotated(draw(1, 1, 5, 2))
    with pytest.raises(ValueError, match=re.escape("`head_dim` must be even")):
        SelfAttention(3, positions=RotaryPositions()).build((None, None, 9))


@pytest.mark.parametrize("width", [6, 7])
def test_sinusoidal_values(width):
    table = SinusoidalPositions().embedding_table(5, width)
    assert (table.shape, table.dtype) == ((5, width), "float32")
    for position in range(5):
        for column in range(width):
            angle = position / 10000 ** ((column - column % 2) / width)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert abs(table[position, column] - expected) < FLOAT32_SINUSOIDAL


def test_embedding_contract(check_layer, tmp_path):
    check_layer(
        lambda **kwargs: BertEmbedding(
            19, 6, num_segments=0, dropout=0.0, max_sequence_length=9, positions=SinusoidalPositions(), **kwargs
        ),
        {"token_ids": np.arange(14, dtype="int32").reshape(2, 7)},
        output_shape=(2, 7, 6),
        num_weights=3,
        tmp_path=tmp_path,
    )
