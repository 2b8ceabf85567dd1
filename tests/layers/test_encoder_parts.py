"""`EncoderParts`: backbones with other parts against the NumPy BERT, in graphs, packed rows, files and training."""

import dataclasses
import functools
import json
import re

import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, save_google, save_huggingface, save_kerashub
from keras_bert_layers.layers import (
    EncoderParts,
    FeedForward,
    GatedFeedForward,
    LocalAttention,
    Positions,
    RelativePositionBias,
    RotaryPositions,
    SinusoidalPositions,
)

# Two blocks of float32 products and LayerNorms, against float64.
FLOAT32 = 1e-5
# A text's tokens beside others in the same row; the project's promise for packed rows.
PACKED = 1e-5
# bfloat16 keeps 8 bits; the weights are drawn large.
HALF_PRECISION = 0.2
MASK = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]], "int32")
CONFIG = BertConfig(
    vocabulary_size=29,
    hidden_dim=12,
    num_layers=2,
    num_heads=3,
    intermediate_dim=20,
    max_sequence_length=11,
    initializer_range=0.3,
    dropout=0.0,
    attention_dropout=0.0,
)


def rotate(vector, position, base=100.0):
    """Pairs of columns as complex numbers, each turned by its angle."""
    angles = position * base ** (-2 * np.arange(len(vector) // 2) / len(vector))
    turned = (vector[0::2] + 1j * vector[1::2]) * np.exp(1j * angles)
    return np.stack([turned.real, turned.imag], axis=-1).ravel()


def sinusoids(num_positions, width):
    return np.array(
        [
            [(np.cos if c % 2 else np.sin)(p / 10000 ** ((c - c % 2) / width)) for c in range(width)]
            for p in range(num_positions)
        ]
    )


def rotate_halves(vector, position, base=100.0):
    """The same with the columns i and i + head_dim / 2 as a pair."""
    pairs = len(vector) // 2
    turned = rotate(np.stack([vector[:pairs], vector[pairs:]], axis=-1).ravel(), position, base)
    return np.concatenate([turned[0::2], turned[1::2]])


def relative_bias(weights, name="positions", part=None):
    part = part or RELATIVE
    return lambda head, distance: weights[f"{name}/bucket_bias"][part.buckets(distance), head]


ROTARY, SINUSOIDAL = RotaryPositions(base=100.0), SinusoidalPositions()
RELATIVE, GATED = RelativePositionBias(num_buckets=8, max_distance=5), GatedFeedForward(9, activation="silu")
NEAR = RelativePositionBias(num_buckets=4, max_distance=2)
MPNET = RelativePositionBias(num_buckets=8, max_distance=5, keeps_position_embedding=True)
HALVES = RotaryPositions(base=100.0, halves=True)
# The parts, and the settings of the NumPy BERT for them.
VARIANTS = {
    "pre-norm": (EncoderParts(normalize_first=True), lambda _: {"normalize_first": True}),
    "causal": (EncoderParts(causal=True), lambda _: {"causal": True}),
    "rotary": (EncoderParts(positions=ROTARY), lambda _: {"rotate": rotate, "position_table": np.zeros((11, 1))}),
    "gated": (EncoderParts(feed_forward=GATED), lambda _: {"activation": "silu"}),
    "sinusoidal": (EncoderParts(positions=SINUSOIDAL), lambda _: {"position_table": sinusoids(11, 12)}),
    "relative": (
        EncoderParts(positions=RELATIVE),
        lambda weights: {"added": relative_bias(weights), "position_table": np.zeros((11, 1))},
    ),
    "all": (
        EncoderParts(positions=ROTARY, feed_forward=GATED, normalize_first=True, causal=True),
        lambda _: {
            "rotate": rotate,
            "position_table": np.zeros((11, 1)),
            "activation": "silu",
            "normalize_first": True,
            "causal": True,
        },
    ),
    "relative, causal": (
        EncoderParts(positions=RELATIVE, causal=True),
        lambda weights: {"added": relative_bias(weights), "position_table": np.zeros((11, 1)), "causal": True},
    ),
    "position embedding too, no bias, other heads": (
        EncoderParts(positions=MPNET, use_bias=False, normalizes_heads=True, pooling="mean"),
        lambda weights: {"added": relative_bias(weights), "pooling": "mean"},
    ),
    # Blocks of one token in a row of seven.
    "local": (
        EncoderParts(positions=RELATIVE, local_attention=LocalAttention(3, global_every=2, positions=NEAR)),
        lambda weights: {
            "added": relative_bias(weights),
            "position_table": np.zeros((11, 1)),
            "of_blocks": {1: {"window": 3, "added": relative_bias(weights, "local_positions", NEAR)}},
        },
    ),
    "modernbert": (
        EncoderParts(
            positions=RotaryPositions(base=9.0, halves=True),
            feed_forward=GatedFeedForward(9, use_bias=False),
            normalize_first=True,
            use_bias=False,
            normalizes_first_attention=False,
            local_attention=LocalAttention(2, global_every=2, positions=HALVES),
            normalizes_heads=True,
            pooling="mean",
        ),
        lambda _: {
            "rotate": functools.partial(rotate_halves, base=9.0),
            "position_table": np.zeros((11, 1)),
            "normalize_first": True,
            "pooling": "mean",
            "of_blocks": {1: {"window": 2, "rotate": rotate_halves}},
        },
    ),
}
SOME = ["all", "relative, causal", "modernbert"]
GRAPHS = [pytest.param(SOME[0], marks=pytest.mark.slow), pytest.param(SOME[1], marks=pytest.mark.slow), SOME[2]]
PACKED_MASK = np.array([[1, 1, 2, 2, 2, 3, 3], [1, 1, 1, 1, 2, 0, 0]], "int32")


def make(name, config=CONFIG, **options):
    backbone = BertBackbone(config, parts=VARIANTS[name][0], **options)
    generator = np.random.default_rng(8)
    for weight in backbone.weights:  # so visible that a missing one would be seen
        weight.assign(generator.normal(scale=0.4, size=weight.shape))
    return backbone


# For tests that only call it.
shared = functools.cache(make)


@pytest.fixture
def inputs():
    generator = np.random.default_rng(4)
    ids = {"token_ids": generator.integers(0, 29, (2, 7)), "segment_ids": generator.integers(0, 2, (2, 7))}
    return {**{name: values.astype("int32") for name, values in ids.items()}, "padding_mask": MASK}


@pytest.mark.parametrize("name", list(VARIANTS))
def test_values(name, inputs, numpy_bert):
    backbone = make(name, return_hidden_states=True, return_attention_scores=True)
    weights = {weight.path: np.asarray(weight.value) for weight in backbone.weights}
    expected = numpy_bert.bert(weights, inputs, num_layers=2, num_heads=3, **VARIANTS[name][1](weights))
    outputs = backbone(inputs)
    for key, value in expected.items():
        for ours, reference in zip(keras.tree.flatten(outputs[key]), keras.tree.flatten(value), strict=True):
            np.testing.assert_allclose(np.asarray(ours), reference, atol=FLOAT32, err_msg=key)
    fused = shared(name)(inputs)["sequence_output"]
    real = MASK == 1  # at padding, what is computed in blocks is another number without a meaning
    np.testing.assert_allclose(np.asarray(fused)[real], expected["sequence_output"][real], atol=FLOAT32)


@pytest.mark.parametrize("name", GRAPHS)
def test_graph(name, inputs):
    """Padding-free on TensorFlow, with the last block of first tokens only."""
    backbone = make(name)
    expected, found = backbone(inputs), backbone.predict(inputs, verbose=0)
    real = MASK == 1
    np.testing.assert_allclose(
        found["sequence_output"][real], np.asarray(expected["sequence_output"])[real], atol=FLOAT32
    )
    np.testing.assert_allclose(found["pooled_output"], np.asarray(expected["pooled_output"]), atol=FLOAT32)


@pytest.mark.parametrize("name", list(VARIANTS))
def test_packed_rows(name, inputs, monkeypatch):
    backbone = shared(name)
    monkeypatch.setattr(backbone, "packed_rows", True)
    found = np.asarray(backbone({**inputs, "padding_mask": PACKED_MASK})["sequence_output"])
    monkeypatch.undo()
    for row, columns in ((0, slice(0, 2)), (0, slice(2, 5)), (0, slice(5, 7)), (1, slice(0, 4)), (1, slice(4, 5))):
        text = {key: value[row : row + 1, columns] for key, value in inputs.items()}
        alone = np.asarray(backbone({**text, "padding_mask": 0 * text["token_ids"] + 1})["sequence_output"])
        np.testing.assert_allclose(found[row, columns], alone[0], atol=PACKED)


@pytest.mark.parametrize("name", GRAPHS)
def test_packed_rows_in_a_graph(name, inputs):
    backbone = make(name)
    backbone.packed_rows = True
    packed = {**inputs, "padding_mask": PACKED_MASK}
    found, expected = (
        run(packed)["sequence_output"] for run in (lambda ids: backbone.predict(ids, verbose=0), backbone)
    )
    real = PACKED_MASK > 0
    np.testing.assert_allclose(found[real], np.asarray(expected)[real], atol=PACKED)


@pytest.mark.parametrize("name", list(VARIANTS))
def test_config_and_file(name, inputs, tmp_path):
    backbone = make(name, dtype="mixed_bfloat16" if name in SOME else "float32")
    backbone.save(tmp_path / "backbone.keras")
    loaded = keras.models.load_model(tmp_path / "backbone.keras")
    assert loaded.get_config() == backbone.get_config()
    for ours, theirs in zip(keras.tree.flatten(loaded(inputs)), keras.tree.flatten(backbone(inputs)), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


@pytest.mark.parametrize("name", ["pre-norm", *SOME])
def test_half_precision(name, inputs):
    half, full = make(name, dtype="mixed_bfloat16"), shared(name)
    for ours, exact in zip(half(inputs).values(), full(inputs).values(), strict=True):
        assert keras.backend.standardize_dtype(ours.dtype) == "bfloat16"
        np.testing.assert_allclose(np.asarray(keras.ops.cast(ours, "float32")), np.asarray(exact), atol=HALF_PRECISION)


@pytest.mark.parametrize(
    ("name", "rematerialize"), [("relative", True), pytest.param("all", False, marks=pytest.mark.slow)]
)
def test_a_task_trains_every_weight(name, rematerialize, inputs, tmp_path):
    task = BertClassifier(make(name), num_classes=2)
    task.backbone.rematerialize = rematerialize
    task.compile(keras.optimizers.SGD(0.1), run_eagerly=rematerialize)
    before = [np.array(weight) for weight in task.trainable_weights]
    task.train_on_batch(inputs, np.array([0, 1]))
    for old, weight in zip(before, task.trainable_weights, strict=True):
        assert np.abs(np.asarray(weight) - old).max() > 0, weight.path
    task.save(tmp_path / "task.keras")
    loaded = keras.models.load_model(tmp_path / "task.keras")
    np.testing.assert_array_equal(np.asarray(loaded(inputs)), np.asarray(task(inputs)))


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow exports")
def test_an_export_of_a_task_that_trained_on_packed_rows(preprocessor, tmp_path):
    import tensorflow as tf

    task = BertClassifier(make("relative"), num_classes=2, preprocessor=preprocessor)
    task.backbone.packed_rows = True
    task.export(tmp_path / "model")
    assert task.backbone.packed_rows
    texts = ["a good film", "bad"]
    found = tf.saved_model.load(tmp_path / "model").signatures["serving_default"](text=tf.constant(texts))
    expected = keras.ops.softmax(task.predict(texts, verbose=0))
    np.testing.assert_allclose(found["probabilities"], expected, atol=FLOAT32)


def test_patterns_are_not_shared(inputs):
    parts = VARIANTS["all"][0]
    one, other = BertBackbone(CONFIG, parts=parts), BertBackbone(CONFIG, parts=parts)
    assert not {id(weight) for weight in one.weights} & {id(weight) for weight in other.weights}
    assert not parts.feed_forward.built
    relative = shared("relative")
    blocks = [relative.get_layer(f"encoder_block_{index}").attention.positions for index in range(2)]
    assert blocks[0] is blocks[1]
    assert [weight.path for weight in relative.weights].count("positions/bucket_bias") == 1
    assert one.get_layer("encoder_block_0").attention.positions.max_sequence_length == 11


def test_local_attention():
    """Which blocks have a window, and that all of them share one part, or the encoder's if there is none."""
    config = dataclasses.replace(CONFIG, num_layers=5)
    for local, own in ((LocalAttention(3, positions=NEAR), True), (LocalAttention(3), False)):
        backbone = BertBackbone(config, parts=EncoderParts(positions=RELATIVE, local_attention=local))
        layers = [backbone.get_layer(f"encoder_block_{index}").attention for index in range(5)]
        assert [layer.window for layer in layers] == [None, 3, 3, None, 3]
        assert len({id(layers[index].positions) for index in (0, 3)}) == 1
        assert len({id(layers[index].positions) for index in (1, 2, 4)}) == 1
        assert (layers[0].positions is not layers[1].positions) == own
        paths = [weight.path for weight in backbone.weights if "bucket_bias" in weight.path]
        assert sorted(paths) == ["local_positions/bucket_bias"] * own + ["positions/bucket_bias"]


def test_config_of_local_attention():
    local = LocalAttention(4, global_every=2, positions=HALVES)
    config = local.get_config()
    assert json.loads(json.dumps(config)) == config
    assert LocalAttention.from_config(config).get_config() == config
    assert LocalAttention.from_config(LocalAttention(4).get_config()) == LocalAttention(4)
    assert [local.is_local(index) for index in range(4)] == [False, True, False, True]


def test_without_biases_there_are_none():
    weights = shared("modernbert").weights
    assert {weight.name for weight in weights} == {"kernel", "gamma", "token_embedding", "segment_embedding"}


def test_lora():
    backbone = make("all")
    backbone.enable_lora(2)
    assert len(backbone.trainable_weights) == 2 * 4 * 2  # blocks, dense layers, matrices


def test_the_parts_of_bert():
    backbone = BertBackbone(CONFIG, parts=EncoderParts(positions=None))
    assert backbone.parts.are_of_bert
    assert backbone.get_config()["parts"] is None
    old = {key: value for key, value in backbone.get_config().items() if key != "parts"}  # of a file from before
    assert BertBackbone.from_config(old).parts == EncoderParts()


@pytest.mark.parametrize("save", [save_huggingface, save_google, save_kerashub])
@pytest.mark.parametrize("name", ["causal", "rotary"])
def test_other_checkpoints_have_no_place_for_parts(name, save, tmp_path):
    text = rf"`{save.__name__}`: `model.parts` must be BERT's own\. Received: .*Save a `\.keras` file\."
    with pytest.raises(ValueError, match=text):
        save(make(name), tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"positions": "rotary"}, "`positions` must be a Positions. Received: positions='rotary'"),
        ({"positions": FeedForward(3)}, "`positions` must be a Positions"),
        ({"feed_forward": GatedFeedForward}, "`feed_forward` must be a Layer"),
        ({"normalize_first": 1}, "`normalize_first` must be True or False"),
        ({"causal": None}, "`causal` must be True or False"),
        ({"use_bias": 0}, "`use_bias` must be True or False"),
        ({"normalizes_first_attention": 0}, "`normalizes_first_attention` must be True or False"),
        ({"normalizes_heads": "yes"}, "`normalizes_heads` must be True or False"),
        ({"local_attention": 128}, "`local_attention` must be a LocalAttention. Received: local_attention=128"),
    ],
)
def test_errors(arguments, text):
    with pytest.raises(TypeError, match=re.escape(f"`EncoderParts`: {text}")):
        EncoderParts(**arguments)


def test_unknown_pooling():
    text = "`EncoderParts`: `pooling` must be one of ['first', 'mean']. Received: pooling='max'"
    with pytest.raises(ValueError, match=re.escape(text)):
        EncoderParts(pooling="max")


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"window": 0}, ValueError, "`window` must be at least 1. Received: window=0"),
        ({"window": 2.0}, TypeError, "`window` must be an integer"),
        ({"window": None}, TypeError, "`window` must be an integer"),
        ({"global_every": 0}, ValueError, "`global_every` must be at least 1"),
        ({"global_every": True}, TypeError, "`global_every` must be an integer"),
        ({"positions": "rotary"}, TypeError, "`positions` must be a Positions. Received: positions='rotary'"),
        ({"positions": FeedForward(3)}, TypeError, "`positions` must be a Positions"),
    ],
)
def test_errors_of_local_attention(arguments, error, text):
    with pytest.raises(error, match=re.escape(f"`LocalAttention`: {text}")):
        LocalAttention(**{"window": 4, **arguments})


def test_the_first_attention_without_a_norm_where_norms_come_after():
    parts = EncoderParts(normalizes_first_attention=False)
    with pytest.raises(ValueError, match="`normalizes_attention` must be True without `normalize_first`"):
        BertBackbone(CONFIG, parts=parts)


def test_wrong_parts():
    with pytest.raises(TypeError, match=r"`BertBackbone`: `parts` must be a EncoderParts"):
        BertBackbone(CONFIG, parts=RotaryPositions())


def test_a_custom_part(inputs):
    @keras.saving.register_keras_serializable("tests")
    class Nearest(Positions):
        def bias(self, num_queries, num_keys):
            distances = keras.ops.arange(num_queries)[:, None] - keras.ops.arange(num_keys)[None]
            return -1e9 * keras.ops.cast(distances != 0, "float32")[None]

    backbone = BertBackbone(CONFIG, parts=EncoderParts(positions=Nearest()), return_attention_scores=True)
    for scores in BertBackbone.from_config(backbone.get_config())(inputs)["attention_scores"]:
        np.testing.assert_allclose(np.asarray(scores)[0], np.broadcast_to(np.eye(7), (3, 7, 7)), atol=FLOAT32)
