import re

import numpy as np
import pytest

from keras_bert_layers.layers import (
    GatedFeedForward,
    RelativePositionBias,
    RotaryPositions,
    SelfAttention,
    TransformerEncoderBlock,
)

# Two LayerNorms and six float32 products, against float64.
FLOAT32 = 1e-5
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]], "int32")


def make(**kwargs):
    return TransformerEncoderBlock(
        **{
            "num_heads": 3,
            "intermediate_dim": 11,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "initializer_range": 0.4,
            **kwargs,
        }
    )


@pytest.mark.parametrize("normalize_first", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_contract(normalize_first, check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: make(normalize_first=normalize_first, activation="gelu_tanh", **kwargs),
        {"hidden": draw(3, 5, 12), "padding_mask": MASK},
        output_shape=(3, 5, 12),
        num_weights=12,
        places=MASK.astype(bool),
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("normalize_first", [False, True])
def test_values(normalize_first, causal, draw, numpy_bert, named_weights):
    layer = make(normalize_first=normalize_first, causal=causal, layer_norm_epsilon=0.01)
    hidden = draw(3, 5, 12)
    layer.build(hidden.shape)
    expected, expected_scores = numpy_bert.encode(
        named_weights(layer, "block"),
        "block",
        hidden,
        MASK,
        num_heads=3,
        activation="gelu_erf",
        epsilon=0.01,
        normalize_first=normalize_first,
        causal=causal,
    )
    output, scores = layer(hidden, MASK, return_attention_scores=True)
    np.testing.assert_allclose(np.asarray(output), expected, atol=FLOAT32)
    np.testing.assert_allclose(np.asarray(scores), expected_scores, atol=FLOAT32)
    np.testing.assert_allclose(np.asarray(layer(hidden, MASK)), expected, atol=FLOAT32)


@pytest.mark.parametrize("use_bias", [False, True])
def test_without_the_norm_before_attention(use_bias, draw, numpy_bert, named_weights):
    layer = make(normalize_first=True, normalizes_attention=False, use_bias=use_bias, window=2)
    hidden = draw(3, 5, 12)
    layer.build(hidden.shape)
    weights = named_weights(layer, "block")
    assert len(weights) == (10 if use_bias else 5)
    options = {"num_heads": 3, "activation": "gelu_erf", "epsilon": 1e-12, "normalize_first": True, "window": 2}
    expected, _ = numpy_bert.encode(weights, "block", hidden, MASK, **options)
    real = MASK > 0
    np.testing.assert_allclose(np.asarray(layer(hidden, MASK))[real], expected[real], atol=FLOAT32)
    assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()


@pytest.mark.parametrize("normalize_first", [False, True])
def test_padding_content_changes_nothing(normalize_first, draw):
    layer = make(normalize_first=normalize_first)
    hidden = draw(3, 5, 12)
    before = np.asarray(layer(hidden, MASK))
    hidden[1, 3:] = -50.0
    np.testing.assert_array_equal(np.asarray(layer(hidden, MASK))[1, :3], before[1, :3])


def test_post_norm_output_is_normal(draw):
    output = np.asarray(make()(draw(2, 5, 12)))
    np.testing.assert_allclose(output.mean(axis=-1), 0, atol=FLOAT32)
    np.testing.assert_allclose(output.std(axis=-1), 1, atol=1e-4)  # epsilon and the fresh gamma of 1


def test_pre_norm_with_dead_sub_layers_is_the_identity(draw):
    layer = make(normalize_first=True)
    hidden = draw(2, 5, 12)
    layer.build(hidden.shape)
    for weight in layer.weights:
        if "/output/" in weight.path:
            weight.assign(np.zeros(weight.shape))
    np.testing.assert_array_equal(np.asarray(layer(hidden)), hidden)


def test_dropout_only_in_training(draw):
    layer = make(dropout=0.5)
    hidden = draw(2, 5, 12)
    np.testing.assert_array_equal(np.asarray(layer(hidden)), np.asarray(layer(hidden, training=False)))
    assert np.abs(np.asarray(layer(hidden, training=True)) - np.asarray(layer(hidden))).max() > 0.01


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"num_heads": 0}, ValueError, "`num_heads` must be at least 1"),
        ({"intermediate_dim": 0}, ValueError, "`intermediate_dim` must be at least 1"),
        ({"activation": "gelu"}, ValueError, "`activation` must be one of ['gelu_erf'"),
        ({"dropout": 1}, ValueError, "`dropout` must be at least 0 and less than 1"),
        ({"attention_dropout": 1}, ValueError, "`attention_dropout` must be at least 0 and less than 1"),
        ({"layer_norm_epsilon": 0}, ValueError, "`layer_norm_epsilon` must be greater than 0"),
        ({"normalize_first": 1}, TypeError, "`normalize_first` must be True or False"),
        ({"normalizes_attention": 1}, TypeError, "`normalizes_attention` must be True or False"),
        ({"normalizes_attention": False}, ValueError, "`normalizes_attention` must be True without `normalize_first`"),
        ({"window": -2}, ValueError, "`window` must be at least 1. Received: window=-2"),
        ({"window": "all"}, TypeError, "`window` must be an integer"),
        ({"use_bias": None}, TypeError, "`use_bias` must be True or False"),
        ({"causal": None}, TypeError, "`causal` must be True or False"),
        ({"initializer_range": 0}, ValueError, "`initializer_range` must be greater than 0"),
    ],
)
def test_errors(arguments, error, text):
    with pytest.raises(error, match=re.escape(f"`TransformerEncoderBlock`: {text}")):
        make(**arguments)


def test_heads_that_do_not_divide(draw):
    with pytest.raises(ValueError, match=re.escape("`num_heads` must divide `hidden_dim` (13)")):
        make()(draw(2, 5, 13))


def test_arguments_of_the_attention_that_it_makes(draw):
    positions = RotaryPositions()
    layer = TransformerEncoderBlock(
        3, 11, attention_dropout=0.2, causal=True, window=4, positions=positions, initializer_range=0.3, autocast=False
    )
    assert layer.attention is None
    own = (layer.attention_dropout, layer.causal, layer.window, layer.positions, layer.initializer_range)
    assert own == (0.2, True, 4, positions, 0.3)
    layer(draw(2, 5, 12))
    made = layer.attention
    assert (made.dropout, made.causal, made.window, made.positions, made.initializer_range) == own
    assert layer.feed_forward.initializer_range == 0.3
    assert not layer.autocast
    plain = TransformerEncoderBlock(3, 11)
    assert [plain.attention_dropout, plain.causal, plain.window, plain.positions, plain.initializer_range] == [
        *(0.1, False, None, None, 0.02)
    ]


def test_order_of_weights(draw):
    """Of `get_weights` and of optimizers: positions, a given feed-forward network, attention, and the rest."""
    layer = make(positions=RelativePositionBias(name="positions"), feed_forward=GatedFeedForward(5, name="gated"))
    layer.build((2, 5, 12))
    assert [weight.path.split("/")[1] for weight in layer.weights] == [
        *("attention", "gated", "gated", "gated", "gated", "attention", "attention", "attention", "attention"),
        *("attention_layer_norm", "attention_layer_norm", "feed_forward_layer_norm", "feed_forward_layer_norm"),
    ]
    assert layer.weights[0].path.endswith("/attention/positions/bucket_bias")


def test_a_config_from_before_attention_was_a_part():
    config = {
        "name": "block",
        "trainable": True,
        "dtype": {
            "module": "keras",
            "class_name": "DTypePolicy",
            "config": {"name": "float32"},
            "registered_name": None,
        },
        "num_heads": 3,
        "intermediate_dim": 11,
        "activation": "gelu_tanh",
        "dropout": 0.2,
        "attention_dropout": 0.3,
        "layer_norm_epsilon": 1e-6,
        "normalize_first": True,
        "normalizes_attention": False,
        "causal": True,
        "window": 6,
        "use_bias": False,
        "initializer_range": 0.1,
        "positions": None,
        "feed_forward": None,
    }
    found = TransformerEncoderBlock.from_config(config).get_config()
    assert found == {**config, "attention": None, "convolution": None}


def test_config_with_an_attention():
    layer = make_with(SelfAttention(3, dropout=0.2, window=4, positions=RotaryPositions(base=7.0)))
    config = layer.get_config()
    assert not {"attention_dropout", "causal", "window", "positions"} & set(config)
    again = TransformerEncoderBlock.from_config(config)
    assert again.get_config() == config
    assert (again.attention.window, again.attention.positions.base) == (4, 7.0)
    assert (again.attention_dropout, again.causal, again.window) == (0.2, False, 4)


def make_with(attention, **options):
    return TransformerEncoderBlock(3, 11, attention=attention, dropout=0.0, initializer_range=0.4, **options)


def test_a_self_attention_that_is_given_is_as_one_that_is_made(draw):
    layer, hidden = make(window=2, causal=True), draw(3, 5, 12)
    given = make_with(SelfAttention(3, window=2, causal=True, name="attention"))
    expected = np.asarray(layer(hidden, MASK))
    given.build(hidden.shape)
    assert [weight.path.split("/", 1)[1] for weight in given.weights] == [
        weight.path.split("/", 1)[1] for weight in layer.weights
    ]
    given.set_weights(layer.get_weights())
    np.testing.assert_array_equal(np.asarray(given(hidden, MASK)), expected)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"attention_dropout": 0.1}, "`attention_dropout` must be left to the `attention` that is given. Received: "),
        ({"causal": False}, "`causal` must be left to the `attention` that is given. Received: causal=False."),
        ({"window": None}, "`window` must be left to the `attention` that is given. Received: window=None."),
        ({"positions": None}, "`positions` must be left to the `attention` that is given."),
    ],
)
def test_arguments_beside_an_attention(arguments, text):
    with pytest.raises(ValueError, match=re.escape(f"`TransformerEncoderBlock`: {text}")):
        make_with(SelfAttention(3), **arguments)


def test_heads_of_another_attention():
    text = "`TransformerEncoderBlock`: `num_heads` must be that of `attention` (2). Received: num_heads=3."
    with pytest.raises(ValueError, match=re.escape(text)):
        make_with(SelfAttention(2))


def test_an_attention_that_is_no_layer():
    with pytest.raises(
        TypeError, match="`TransformerEncoderBlock`: `attention` must be a Layer. Received: attention=3"
    ):
        make_with(3)


def test_an_unknown_argument():
    names = [
        *("num_heads", "intermediate_dim", "attention", "feed_forward", "activation", "dropout", "layer_norm_epsilon"),
        *("normalize_first", "normalizes_attention", "use_bias", "attention_dropout", "causal", "window", "positions"),
        *("initializer_range", "convolution", "name", "dtype", "trainable"),
    ]
    text = f"`TransformerEncoderBlock`: `windows` must be one of the arguments {names}. Received: windows=3."
    with pytest.raises(ValueError, match=re.escape(text)):
        make(windows=3)
