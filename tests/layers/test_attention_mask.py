"""Which keys a query may attend to, against loops; in blocks, against the same at once."""

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import RelativePositionBias
from keras_bert_layers.layers.attention_mask import AttentionMask
from keras_bert_layers.layers.local_blocks import Blocks

NUMBERS = np.array([[1, 1, 2, 2, 2, 2, 3, 0], [1, 1, 1, 1, 1, 0, 0, 0]], "int32")
QUERY = np.zeros((2, 3, 8, 4), "float32")


@pytest.mark.parametrize("window", [None, 4])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("packed_rows", [False, True])
def test_of_all(packed_rows, causal, window):
    visible, bias = AttentionMask(NUMBERS, packed_rows, causal, window, None).of_all(QUERY, QUERY)
    assert bias is None
    found = np.broadcast_to(np.asarray(visible), (2, 1, 8, 8))
    for b, i, j in np.ndindex(2, 8, 8):
        own_text = NUMBERS[b, i] == NUMBERS[b, j] if packed_rows else NUMBERS[b, j] > 0
        near = (j <= i or not causal) and (window is None or abs(i - j) <= window // 2)
        assert found[b, 0, i, j] == (own_text and near), (b, i, j)


def test_nothing_is_hidden():
    assert AttentionMask(None, False, False, None, None).of_all(QUERY, QUERY) == (None, None)


@pytest.mark.parametrize("packed_rows", [False, True])
def test_in_blocks(packed_rows):
    positions = RelativePositionBias(num_buckets=4, max_distance=3)
    positions.build((None, 3, None, 4))
    mask = AttentionMask(NUMBERS, packed_rows, False, 4, positions)
    blocks = Blocks.of(8, mask.reach)
    assert (blocks.size, blocks.count, blocks.margin) == (2, 4, 2)
    expected, expected_bias = map(np.asarray, mask.of_all(QUERY, QUERY))
    visible, bias = (keras.ops.convert_to_numpy(part) for part in mask.in_blocks(blocks, QUERY))
    for b, f, c, k in np.ndindex(2, 4, 2, 6):
        i, j = 2 * f + c, 2 * f + k - 2
        if 0 <= j < 8 and NUMBERS[b, j]:
            assert visible[b, 0, f, c, k] == expected[b, 0, i, j], (b, i, j)
            np.testing.assert_array_equal(bias[:, 0, c, k], expected_bias[:, i, j])
