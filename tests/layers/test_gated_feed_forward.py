import numpy as np
import pytest

from keras_bert_layers.layers import GatedFeedForward

# Two float32 products, against float64.
FLOAT32 = 1e-5


def test_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: GatedFeedForward(7, activation="silu", initializer_range=0.4, **kwargs),
        {"hidden": draw(2, 5, 6)},
        output_shape=(2, 5, 6),
        num_weights=4,
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("activation", ["gelu_erf", "silu", "relu"])
def test_values(activation, draw, numpy_bert):
    layer = GatedFeedForward(7, activation=activation, initializer_range=0.4)
    hidden = draw(2, 5, 6)
    layer.build(hidden.shape)
    kernel, bias, output, output_bias = (np.asarray(weight, "float64") for weight in layer.weights)
    assert kernel.shape == (6, 14)
    gate = numpy_bert.ACTIVATIONS[activation](hidden @ kernel[:, :7] + bias[:7])
    expected = (gate * (hidden @ kernel[:, 7:] + bias[7:])) @ output + output_bias
    np.testing.assert_allclose(np.asarray(layer(hidden)), expected, atol=FLOAT32)


def test_errors():
    with pytest.raises(ValueError, match="`GatedFeedForward`: `intermediate_dim` must be at least 1"):
        GatedFeedForward(0)
