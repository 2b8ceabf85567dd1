"""`interpolate_positions`: the old positions, stretched over longer texts."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig
from keras_bert_layers.tasks import interpolate_positions

# float64 sums, rounded to float32.
FLOAT32 = 1e-6


def make(length, offset=0):
    keras.utils.set_random_seed(5)
    sizes = {"vocabulary_size": 18, "hidden_dim": 8, "num_layers": 1, "num_heads": 2, "intermediate_dim": 7}
    config = BertConfig(**sizes, max_sequence_length=length, position_offset=offset, initializer_range=0.3)
    return BertBackbone(config)


def positions(backbone):
    return keras.ops.convert_to_numpy(backbone.get_layer("embedding").position_embedding)


@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize(("old_length", "length"), [(5, 13), (5, 7), (1, 3)])
def test_values(old_length, length, offset):
    old = make(old_length, offset)
    new = interpolate_positions(old, length)
    table, longer = positions(old), positions(new)
    np.testing.assert_array_equal(longer[:offset], table[:offset])
    table, longer = table[offset:], longer[offset:]
    assert longer.shape == (length, 8)
    places = np.arange(length) * (old_length - 1) / (length - 1)
    expected = np.stack([np.interp(places, np.arange(old_length), column) for column in table.T], axis=1)
    np.testing.assert_allclose(longer, expected, atol=FLOAT32)
    np.testing.assert_array_equal(longer[[0, -1]], table[[0, -1]])
    for ours, theirs in zip(new.weights, old.weights, strict=True):
        if "position" not in ours.path:
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_errors():
    with pytest.raises(ValueError, match="`interpolate_positions`: `max_sequence_length` must be at least 6"):
        interpolate_positions(make(5), 5)
    with pytest.raises(TypeError, match="`interpolate_positions`: `max_sequence_length` must be an integer"):
        interpolate_positions(make(5), 7.5)
