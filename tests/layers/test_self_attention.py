import re

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import SelfAttention

# float32 products of some ten numbers and a softmax, against float64.
FLOAT32 = 5e-6
# Float32 sums in another order; padding measures an exact 0.
COMPANY = 1e-5
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]], "int32")


def make(**kwargs):
    return SelfAttention(**{"num_heads": 3, "initializer_range": 0.4, **kwargs})


@pytest.mark.parametrize("causal", [False, True])
def test_contract(causal, check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: make(causal=causal, **kwargs),
        {"hidden": draw(3, 5, 12), "padding_mask": MASK},
        output_shape=(3, 5, 12),
        num_weights=4,
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, MASK, MASK.astype(bool)], ids=["no mask", "int mask", "bool mask"])
def test_values(causal, mask, draw, numpy_bert, named_weights):
    layer = make(causal=causal)
    hidden = draw(3, 5, 12)
    layer.build(hidden.shape)
    full = np.ones((3, 5), "int32") if mask is None else mask
    expected, expected_scores = numpy_bert.attend(named_weights(layer, "a"), "a", hidden, full, 3, causal)
    output, scores = layer(hidden, mask, return_attention_scores=True)
    np.testing.assert_allclose(np.asarray(output), expected, atol=FLOAT32)
    np.testing.assert_allclose(np.asarray(scores), expected_scores, atol=FLOAT32)
    np.testing.assert_allclose(np.asarray(layer(hidden, mask)), expected, atol=FLOAT32)


def test_without_biases(draw, numpy_bert, named_weights):
    layer = make(use_bias=False)
    hidden = draw(3, 5, 12)
    layer.build(hidden.shape)
    weights = named_weights(layer, "a")
    assert list(weights) == ["a/query_key_value/kernel", "a/output/kernel"]
    expected, _ = numpy_bert.attend(weights, "a", hidden, MASK, 3)
    np.testing.assert_allclose(np.asarray(layer(hidden, MASK)), expected, atol=FLOAT32)
    first = np.asarray(layer(hidden, MASK, first_token_only=True))
    np.testing.assert_allclose(first, expected[:, 0], atol=FLOAT32)


def test_scores_are_probabilities(draw):
    scores = np.asarray(make()(draw(3, 5, 12), MASK, return_attention_scores=True)[1])
    assert scores.shape == (3, 3, 5, 5)
    np.testing.assert_allclose(scores.sum(axis=-1), 1, atol=FLOAT32)
    assert (scores[1, :, :, 3:] == 0).all()
    np.testing.assert_allclose(scores[2], 0.2, atol=FLOAT32)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_padding_content_changes_nothing(dtype, draw):
    layer = make(dtype=dtype)
    hidden = draw(3, 5, 12)
    before = np.asarray(keras.ops.cast(layer(hidden, MASK), "float32"))
    hidden[1, 3:] = 1000.0
    after = np.asarray(keras.ops.cast(layer(hidden, MASK), "float32"))
    np.testing.assert_array_equal(after[1, :3], before[1, :3])


def test_a_sequence_of_one_token(draw):
    layer = make()
    hidden = draw(2, 1, 12)
    output, scores = layer(hidden, return_attention_scores=True)
    np.testing.assert_array_equal(np.asarray(scores), np.ones((2, 3, 1, 1)))
    np.testing.assert_allclose(np.asarray(output), np.asarray(layer(hidden)), atol=FLOAT32)


def test_longer_padding_changes_nothing(draw):
    layer = make()
    hidden = draw(3, 5, 12)
    longer = np.concatenate([hidden, draw(3, 4, 12)], axis=1)
    longer_mask = np.pad(MASK, ((0, 0), (0, 4)))
    short, long = np.asarray(layer(hidden, MASK)), np.asarray(layer(longer, longer_mask))
    np.testing.assert_allclose(long[:2, :3], short[:2, :3], atol=COMPANY)


def test_batch_company_changes_nothing(draw):
    layer = make()
    hidden = draw(3, 5, 12)
    together = np.asarray(layer(hidden, MASK))
    for row in range(3):
        alone = np.asarray(layer(hidden[row : row + 1], MASK[row : row + 1]))
        np.testing.assert_allclose(alone[0], together[row], atol=COMPANY)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_a_row_of_padding_is_finite(dtype, draw):
    output, scores = make(dtype=dtype)(5 * draw(3, 5, 12), np.zeros((3, 5), "int32"), return_attention_scores=True)
    assert np.isfinite(np.asarray(keras.ops.cast(output, "float32"))).all()
    # 0.2 in bfloat16 is off by less than 0.001.
    np.testing.assert_allclose(np.asarray(keras.ops.cast(scores, "float32")), 0.2, atol=1e-3)


def test_causal_positions_do_not_see_later_ones(draw):
    layer = make(causal=True)
    hidden = draw(2, 5, 12)
    before = np.asarray(layer(hidden))
    hidden[:, 3:] += 1
    after = np.asarray(layer(hidden))
    np.testing.assert_array_equal(after[:, :3], before[:, :3])
    assert np.abs(after[:, 3:] - before[:, 3:]).max() > 0.01


def test_permuting_positions_permutes_the_output(draw):
    layer = make()
    hidden = draw(2, 5, 12)
    order = [3, 0, 4, 1, 2]
    np.testing.assert_allclose(np.asarray(layer(hidden[:, order])), np.asarray(layer(hidden))[:, order], atol=FLOAT32)


def test_permuting_heads_in_all_weights_changes_nothing(draw):
    layer = make()
    hidden = draw(2, 5, 12)
    before = np.asarray(layer(hidden))
    columns = np.arange(12).reshape(3, 4)[[2, 0, 1]].reshape(12)
    merged, merged_bias, output, bias = (np.asarray(weight) for weight in layer.get_weights())
    parts = np.concatenate([part * 12 + columns for part in range(3)])
    layer.set_weights([merged[:, parts], merged_bias[parts], output[columns], bias])
    np.testing.assert_allclose(np.asarray(layer(hidden)), before, atol=FLOAT32)


def test_dropout_only_in_training(draw):
    layer = make(dropout=0.5)
    hidden = draw(2, 5, 12)
    np.testing.assert_array_equal(np.asarray(layer(hidden)), np.asarray(layer(hidden, training=False)))
    assert np.abs(np.asarray(layer(hidden, training=True)) - np.asarray(layer(hidden))).max() > 1e-3
    # The scores that a caller sees are those before dropout.
    scores = np.asarray(layer(hidden, training=True, return_attention_scores=True)[1])
    np.testing.assert_allclose(scores.sum(axis=-1), 1, atol=FLOAT32)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"num_heads": 0}, ValueError, "`num_heads` must be at least 1"),
        ({"dropout": -0.1}, ValueError, "`dropout` must be at least 0 and less than 1"),
        ({"causal": "yes"}, TypeError, "`causal` must be True or False. Received: causal='yes'"),
        ({"window": 0}, ValueError, "`window` must be at least 1. Received: window=0"),
        ({"window": 1.5}, TypeError, "`window` must be an integer"),
        ({"use_bias": "no"}, TypeError, "`use_bias` must be True or False"),
        ({"positions": "rotary"}, TypeError, "`positions` must be a Positions. Received: positions='rotary'"),
        ({"initializer_range": 0}, ValueError, "`initializer_range` must be greater than 0"),
    ],
)
def test_errors(arguments, error, text):
    with pytest.raises(error, match=re.escape(f"`SelfAttention`: {text}")):
        make(**arguments)


def test_heads_that_do_not_divide(draw):
    with pytest.raises(ValueError, match=re.escape("`num_heads` must divide `hidden_dim` (13). Received: num_heads=3")):
        make()(draw(2, 5, 13))


def test_an_input_without_a_batch(draw):
    with pytest.raises(ValueError, match=re.escape("`hidden.shape` must be (batch, sequence, hidden_dim)")):
        make()(draw(5, 12))
