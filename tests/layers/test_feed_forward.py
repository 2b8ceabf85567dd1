"""`FeedForward` and `GatedFeedForward` beside NumPy."""

import re

import keras
import numpy as np
import pytest

from keras_bert_layers.config import ACTIVATIONS
from keras_bert_layers.layers import FeedForward, GatedFeedForward

# float32 sums of some twenty products, against float64.
FLOAT32 = 5e-6
# Two float32 products, against float64.
FLOAT32_GATED = 1e-5


def test_contract(check_layer, draw, tmp_path):
    def make(**kwargs):
        return FeedForward(11, activation="gelu_tanh", initializer_range=0.3, **kwargs)

    check_layer(make, {"hidden": draw(2, 5, 7)}, output_shape=(2, 5, 7), num_weights=4, tmp_path=tmp_path)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_values(activation, draw, numpy_bert, named_weights):
    layer = FeedForward(11, activation=activation)
    hidden = draw(2, 5, 7)
    layer.build(hidden.shape)
    expected = numpy_bert.transform(named_weights(layer, "ff"), "ff", hidden, activation)
    np.testing.assert_allclose(np.asarray(layer(hidden)), expected, atol=FLOAT32)


def test_without_biases(draw, numpy_bert, named_weights):
    for layer in (FeedForward(11, use_bias=False), GatedFeedForward(11, use_bias=False)):
        hidden = draw(2, 5, 7)
        layer.build(hidden.shape)
        weights = named_weights(layer, "ff")
        assert list(weights) == ["ff/intermediate/kernel", "ff/output/kernel"]
        expected = numpy_bert.transform(weights, "ff", hidden, "gelu_erf")
        np.testing.assert_allclose(np.asarray(layer(hidden)), expected, atol=FLOAT32_GATED)
        assert type(layer).from_config(layer.get_config()).use_bias is False


def test_gates_without_biases_and_with_dropout(draw, numpy_bert, named_weights):
    layer = GatedFeedForward(11, gate_has_bias=False, dropout=0.5)
    hidden = draw(2, 5, 7)
    layer.build(hidden.shape)
    layer.output_projection.bias.assign(draw(7))
    weights = named_weights(layer, "ff")
    assert list(weights) == ["ff/intermediate/kernel", "ff/output/kernel", "ff/output/bias"]
    expected = numpy_bert.transform(weights, "ff", hidden, "gelu_erf")
    np.testing.assert_allclose(np.asarray(layer(hidden)), expected, atol=FLOAT32_GATED)
    again = GatedFeedForward.from_config(layer.get_config())
    assert (again.gate_has_bias, again.dropout) == (False, 0.5)
    layer.output_projection.kernel.assign(np.eye(11, 7))
    dropped = np.asarray(layer(hidden, training=True)) - np.asarray(layer.output_projection.bias)
    assert 0.2 < (dropped == 0).mean() < 0.8


def test_tokens_without_a_batch_axis(draw):
    layer = FeedForward(11)
    hidden = draw(2, 5, 7)
    whole = np.asarray(layer(hidden))
    np.testing.assert_allclose(np.asarray(layer(hidden.reshape(10, 7))), whole.reshape(10, 7), atol=FLOAT32)


def test_a_token_does_not_see_another(draw):
    layer = FeedForward(11)
    hidden = draw(2, 5, 7)
    before = np.asarray(layer(hidden))
    hidden[:, 3] += 1
    after = np.asarray(layer(hidden))
    np.testing.assert_allclose(np.delete(after, 3, axis=1), np.delete(before, 3, axis=1), atol=FLOAT32)
    assert np.abs(after[:, 3] - before[:, 3]).min() > 0


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"intermediate_dim": 0}, ValueError, "`FeedForward`: `intermediate_dim` must be at least 1"),
        ({"intermediate_dim": 1.5}, TypeError, "`FeedForward`: `intermediate_dim` must be an integer"),
        ({"activation": "gelu"}, ValueError, "Received: activation='gelu'. Use \"gelu_erf\""),
        ({"activation": "swoosh"}, ValueError, "`FeedForward`: `activation` must be one of ['gelu_erf'"),
        ({"use_bias": 1}, TypeError, "`FeedForward`: `use_bias` must be True or False. Received: use_bias=1"),
        ({"initializer_range": 0}, ValueError, "`FeedForward`: `initializer_range` must be greater than 0"),
    ],
)
def test_errors(arguments, error, text):
    with pytest.raises(error, match=re.escape(text)):
        FeedForward(**{"intermediate_dim": 11, **arguments})


def test_weight_paths():
    layer = FeedForward(11, name="feed_forward")
    layer(keras.ops.ones((2, 7)))
    assert [weight.path for weight in layer.weights] == [
        "feed_forward/intermediate/kernel",
        "feed_forward/intermediate/bias",
        "feed_forward/output/kernel",
        "feed_forward/output/bias",
    ]


def test_gated_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: GatedFeedForward(7, activation="silu", initializer_range=0.4, **kwargs),
        {"hidden": draw(2, 5, 6)},
        output_shape=(2, 5, 6),
        num_weights=4,
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("activation", ["gelu_erf", "silu", "relu"])
def test_gated_values(activation, draw, numpy_bert):
    layer = GatedFeedForward(7, activation=activation, initializer_range=0.4)
    hidden = draw(2, 5, 6)
    layer.build(hidden.shape)
    kernel, bias, output, output_bias = (np.asarray(weight, "float64") for weight in layer.weights)
    assert kernel.shape == (6, 14)
    gate = numpy_bert.ACTIVATIONS[activation](hidden @ kernel[:, :7] + bias[:7])
    expected = (gate * (hidden @ kernel[:, 7:] + bias[7:])) @ output + output_bias
    np.testing.assert_allclose(np.asarray(layer(hidden)), expected, atol=FLOAT32_GATED)


def test_gated_errors():
    with pytest.raises(ValueError, match="`GatedFeedForward`: `intermediate_dim` must be at least 1"):
        GatedFeedForward(0)
