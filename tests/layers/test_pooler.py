"""`Pooler` and `NextSentenceHead` beside NumPy."""

import re

import numpy as np
import pytest

from keras_bert_layers.layers import NextSentenceHead, Pooler

# One float32 product, against float64.
FLOAT32 = 2e-6


def test_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: Pooler(initializer_range=0.3, **kwargs),
        {"hidden": draw(3, 5, 7)},
        output_shape=(3, 7),
        num_weights=2,
        tmp_path=tmp_path,
    )


def test_values(draw, numpy_bert, named_weights):
    layer = Pooler()
    hidden = draw(3, 5, 7)
    layer.build(hidden.shape)
    expected = np.tanh(numpy_bert.dense(named_weights(layer, "pooler"), "pooler/dense", hidden[:, 0]))
    np.testing.assert_allclose(np.asarray(layer(hidden)), expected, atol=FLOAT32)
    np.testing.assert_allclose(np.asarray(layer(hidden[:, 0])), expected, atol=FLOAT32)


@pytest.mark.parametrize("activation", ["relu", "gelu_erf"])
def test_other_activations(activation, draw, numpy_bert, named_weights):
    layer = Pooler(activation=activation)
    hidden = draw(3, 5, 7)
    layer.build(hidden.shape)
    product = numpy_bert.dense(named_weights(layer, "pooler"), "pooler/dense", hidden[:, 0])
    np.testing.assert_allclose(np.asarray(layer(hidden)), numpy_bert.ACTIVATIONS[activation](product), atol=FLOAT32)
    assert Pooler.from_config(layer.get_config()).activation == activation


def test_only_the_first_token_counts(draw):
    layer = Pooler()
    hidden = draw(3, 5, 7)
    before = np.asarray(layer(hidden))
    hidden[:, 1:] = 9.0
    np.testing.assert_array_equal(np.asarray(layer(hidden)), before)


def test_errors(draw):
    with pytest.raises(ValueError, match="`Pooler`: `initializer_range` must be greater than 0"):
        Pooler(initializer_range=0)
    with pytest.raises(ValueError, match=re.escape("`Pooler`: `activation` must be one of ['gelu_erf', 'gelu_tanh'")):
        Pooler(activation="gelu")
    with pytest.raises(ValueError, match=re.escape("`hidden.shape` must be (batch, sequence, hidden_dim) or")):
        Pooler()(draw(3, 5, 7, 2))


def test_next_sentence_contract(check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: NextSentenceHead(initializer_range=0.3, **kwargs),
        {"pooled": draw(3, 7)},
        output_shape=(3, 2),
        output_dtype="float32",
        num_weights=2,
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("shape", [(3, 7), (2, 5, 7)])
def test_next_sentence_values(draw, numpy_bert, named_weights, shape):
    layer = NextSentenceHead()
    pooled = draw(*shape)
    layer.build(pooled.shape)
    expected = numpy_bert.dense(named_weights(layer, "head"), "head/dense", pooled)
    np.testing.assert_allclose(np.asarray(layer(pooled)), expected, atol=FLOAT32)


def test_next_sentence_errors():
    with pytest.raises(ValueError, match="`NextSentenceHead`: `initializer_range` must be greater than 0"):
        NextSentenceHead(initializer_range=0)
