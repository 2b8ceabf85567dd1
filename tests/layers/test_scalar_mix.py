import keras
import numpy as np
import pytest

from keras_bert_layers.layers import ScalarMix

# A float32 sum of four numbers.
FLOAT32 = 1e-6


def test_contract(check_layer, draw, tmp_path):
    check_layer(
        ScalarMix,
        {"hidden_states": draw(3, 5, 4, 7)},
        output_shape=(3, 5, 7),
        num_weights=2,
        tmp_path=tmp_path,
    )


def test_values(draw):
    states = draw(2, 4, 7)
    layer = ScalarMix()
    np.testing.assert_allclose(np.asarray(layer(states)), states.mean(axis=1), atol=FLOAT32)
    weights = np.array([0.3, -1.2, 2.0, 0.0], "float32")
    layer.layer_weights.assign(weights)
    layer.gamma.assign(1.5)
    shares = np.exp(weights) / np.exp(weights).sum()
    expected = 1.5 * sum(share * states[:, index] for index, share in enumerate(shares))
    np.testing.assert_allclose(np.asarray(layer(states)), expected, atol=4 * FLOAT32)


def test_training_finds_the_layer_that_helps(draw):
    states = draw(60, 3, 5)
    layer = ScalarMix()
    model = keras.Sequential([keras.Input((3, 5)), layer])
    model.compile(keras.optimizers.Adam(0.1), "mse", run_eagerly=True)
    model.fit(states, states[:, 1], epochs=30, batch_size=60, verbose=0)
    shares = keras.ops.convert_to_numpy(keras.ops.softmax(layer.layer_weights))
    assert shares.argmax() == 1
    assert shares[1] > 0.8


def test_errors(draw):
    for wrong in (keras.Input((None, 7)), keras.Input(())):
        with pytest.raises(
            ValueError, match=r"`ScalarMix`: `hidden_states` must have the shape \(\.\.\., layers, hidden"
        ):
            ScalarMix()(wrong)
    layer = ScalarMix()
    layer(draw(2, 4, 7))
    with pytest.raises(ValueError, match="axis -2"):
        layer(draw(2, 3, 7))
