import json
import re

import numpy as np
import pytest

from keras_bert_layers.layers import RotaryPositions, SelfAttention

# float32 rotations, against complex numbers in float64.
FLOAT32 = 1e-6
# Scores of two rotated vectors of length 3: tables are rounded to float32.
SHIFTED = 1e-5


def test_values(draw):
    heads = draw(2, 3, 5, 6)
    rotated = np.asarray(RotaryPositions(base=50.0).rotated(heads))
    for position in range(5):
        for pair in range(3):
            point = heads[..., position, 2 * pair] + 1j * heads[..., position, 2 * pair + 1]
            turned = point * np.exp(1j * position * 50.0 ** (-2 * pair / 6))
            np.testing.assert_allclose(rotated[..., position, 2 * pair], turned.real, atol=FLOAT32)
            np.testing.assert_allclose(rotated[..., position, 2 * pair + 1], turned.imag, atol=FLOAT32)


def test_scores_see_distances_only(draw):
    """Also far from the start, where angles in float32 would be off."""
    part = RotaryPositions(max_sequence_length=600)
    query, key = np.broadcast_to(draw(2, 1, 1, 1, 8), (2, 1, 1, 600, 8)).astype("float32")
    query, key = (np.asarray(part.rotated(heads), "float64")[0, 0] for heads in (query, key))
    scores = query @ key.T
    for distance in (0, 1, 7, 80):
        same = np.diagonal(scores, distance)
        np.testing.assert_allclose(same, same[0], atol=SHIFTED)
    assert np.abs(np.diagonal(scores, 0)[0] - np.diagonal(scores, 1)[0]) > 0.01


def test_attention_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: SelfAttention(3, positions=RotaryPositions(), initializer_range=0.4, **kwargs),
        {"hidden": draw(2, 5, 12)},
        output_shape=(2, 5, 12),
        num_weights=4,
        tmp_path=tmp_path,
    )


def test_config():
    config = RotaryPositions(base=50, max_sequence_length=7, name="turns").get_config()
    assert json.loads(json.dumps(config)) == config
    assert RotaryPositions.from_config(config).get_config() == config
    assert (config["base"], config["max_sequence_length"]) == (50.0, 7)


def test_errors(draw):
    with pytest.raises(ValueError, match=re.escape("`RotaryPositions`: `base` must be greater than 0")):
        RotaryPositions(base=0)
    with pytest.raises(ValueError, match=re.escape("`max_sequence_length` must be at least 1")):
        RotaryPositions(max_sequence_length=0)
    text = "`heads` must have at most `max_sequence_length` (4) positions. Received: heads=<5 positions>"
    with pytest.raises(ValueError, match=re.escape(text)):
        RotaryPositions(max_sequence_length=4).rotated(draw(1, 1, 5, 2))
    with pytest.raises(ValueError, match=re.escape("`head_dim` must be even")):
        SelfAttention(3, positions=RotaryPositions()).build((None, None, 9))
