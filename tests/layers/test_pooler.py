"""`Pooler`, `HeadTransform` and `NextSentenceHead` beside NumPy."""

import re

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import HeadTransform, NextSentenceHead, Pooler, TransformerEncoderBlock

# One float32 product, against float64.
FLOAT32 = 2e-6
# And a LayerNorm of seven numbers.
NORMED = 1e-5


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


@pytest.mark.parametrize(("use_bias", "num_weights"), [(True, 4), (False, 2)])
def test_transform_contract(use_bias, num_weights, check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: HeadTransform(use_bias=use_bias, initializer_range=0.4, **kwargs),
        {"hidden": draw(3, 5, 7)},
        output_shape=(3, 5, 7),
        num_weights=num_weights,
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("shape", [(3, 7), (2, 5, 7)])
@pytest.mark.parametrize(("use_bias", "activation"), [(True, "relu"), (False, "gelu_erf")])
def test_transform_values(use_bias, activation, shape, draw, numpy_bert, named_weights):
    layer = HeadTransform(activation=activation, use_bias=use_bias, layer_norm_epsilon=0.01)
    hidden = draw(*shape)
    layer.build(hidden.shape)
    weights = named_weights(layer, "head")
    names = ["dense/kernel", "dense/bias", "layer_norm/gamma", "layer_norm/beta"]
    assert list(weights) == [f"head/{name}" for name in (names if use_bias else names[::2])]
    activated = numpy_bert.ACTIVATIONS[activation](numpy_bert.dense(weights, "head/dense", hidden))
    expected = numpy_bert.layer_norm(weights, "head/layer_norm", activated, 0.01)
    np.testing.assert_allclose(np.asarray(layer(hidden)), expected, atol=NORMED)


def test_a_transform_of_the_real_tokens_only(draw):
    """In a graph, with the tokens that a block computed, and without the padding between."""
    block, layer = TransformerEncoderBlock(3, 11, initializer_range=0.4), HeadTransform(initializer_range=0.4)
    hidden, mask = draw(2, 5, 12), np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], "int32")
    expected, rows, transform = layer(block(hidden, mask)), [], layer.dense.call

    def spy(inputs, *args, **kwargs):
        rows.append(tuple(inputs.shape))
        return transform(inputs, *args, **kwargs)

    layer.dense.call = spy
    inputs = {
        "hidden": keras.Input((None, 12), name="hidden"),
        "mask": keras.Input((None,), dtype="int32", name="mask"),
    }
    model = keras.Model(inputs, layer(block(inputs["hidden"], inputs["mask"])))
    found = model.predict({"hidden": hidden, "mask": mask}, verbose=0)
    np.testing.assert_allclose(found[mask > 0], np.asarray(expected)[mask > 0], atol=NORMED)
    if keras.backend.backend() == "tensorflow":
        assert rows[-1] == (None, 12)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"activation": "gelu"}, ValueError, "`activation` must be one of ['gelu_erf', 'gelu_tanh'"),
        ({"use_bias": 0}, TypeError, "`use_bias` must be True or False. Received: use_bias=0"),
        ({"layer_norm_epsilon": 0}, ValueError, "`layer_norm_epsilon` must be greater than 0"),
        ({"initializer_range": 0}, ValueError, "`initializer_range` must be greater than 0"),
    ],
)
def test_transform_errors(arguments, error, text):
    with pytest.raises(error, match=re.escape(f"`HeadTransform`: {text}")):
        HeadTransform(**arguments)


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
