import re

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import WindowPooling

# A float32 mean of five numbers.
FLOAT32 = 1e-6
MODES = ["mean", "max", "attention"]
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], "int32")


@pytest.mark.parametrize("mode", MODES)
def test_contract(mode, check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: WindowPooling(mode, **kwargs),
        {"windows": draw(3, 5, 7), "window_mask": MASK},
        output_shape=(3, 7),
        num_weights=1 if mode == "attention" else 0,
        tmp_path=tmp_path,
    )


def test_values(draw):
    windows = draw(3, 5, 7) - 3  # all negative: an absent window must not win as a zero
    parts = [windows[0], windows[1, :3], windows[2, :1]]
    for mode, pool in (("mean", np.mean), ("max", np.max)):
        expected = [pool(part, axis=0) for part in parts]
        np.testing.assert_allclose(np.asarray(WindowPooling(mode)(windows, MASK)), expected, atol=4 * FLOAT32)


def test_attention_is_the_mean_at_first_and_then_weighs_by_its_query(draw):
    windows, layer = draw(3, 5, 7), WindowPooling("attention")
    means = [part.mean(axis=0) for part in (windows[0], windows[1, :3], windows[2, :1])]
    np.testing.assert_allclose(np.asarray(layer(windows, MASK)), means, atol=FLOAT32)
    query = draw(7)
    layer.query.assign(query)
    powers = np.exp(windows @ query) * MASK
    expected = np.sum(windows * (powers / powers.sum(axis=1, keepdims=True))[..., None], axis=1)
    np.testing.assert_allclose(np.asarray(layer(windows, MASK)), expected, atol=4 * FLOAT32)


@pytest.mark.parametrize("mode", MODES)
def test_one_window_keeps_its_vector_bit_for_bit_whatever_is_absent_beside_it(mode, draw):
    windows, layer = draw(3, 5, 7), WindowPooling(mode)
    layer.build(windows.shape)
    for weight in layer.weights:
        weight.assign(draw(7))
    absent = np.array(windows)
    absent[:, 1:] = np.nan
    only_the_first = np.eye(1, 5, dtype="int32").repeat(3, axis=0)
    np.testing.assert_array_equal(np.asarray(layer(absent, only_the_first)), windows[:, 0])
    np.testing.assert_array_equal(np.asarray(layer(windows[:, :1], only_the_first[:, :1])), windows[:, 0])


def test_flat_windows(draw):
    windows, layer = draw(3, 5, 7), WindowPooling("max")
    flat = keras.ops.reshape(windows, (15, 7))
    np.testing.assert_array_equal(np.asarray(layer(flat, MASK)), np.asarray(layer(windows, MASK)))


def test_an_unknown_mode_is_an_error():
    message = "`WindowPooling`: `mode` must be one of ['mean', 'max', 'attention']. Received: mode='sum'."
    with pytest.raises(ValueError, match=re.escape(message)):
        WindowPooling("sum")
