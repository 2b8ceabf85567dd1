"""`DisentangledSelfAttention` beside its definition, and in blocks: gradients, dropout, packed rows, other tasks."""

import re

import keras
import numpy as np
import pytest
from disentangled_reference import normalized, probabilities
from keras import ops
from rematerialized_step import assert_equal_steps

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, save_huggingface
from keras_bert_layers.layers import (
    DisentangledSelfAttention,
    EncoderParts,
    RelativeVectors,
    RotaryPositions,
    TransformerEncoderBlock,
    attention_kernels,
)
from keras_bert_layers.tasks import reduce_layers

# Float32 products and a softmax, against float64.
FLOAT32 = 1e-5
MASK = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]], "int32")
CONFIG = BertConfig(
    vocabulary_size=29, hidden_dim=12, num_layers=2, num_heads=3, intermediate_dim=20, max_sequence_length=11,
    initializer_range=0.3, dropout=0.0, attention_dropout=0.0,
)  # fmt: skip
KINDS = {"c2p": "content_to_position", "p2c": "position_to_content"}


def make(kinds=tuple(KINDS), *, shares=False, normalize=False, **options):
    kept = {key: options[key] for key in ("dtype",) if key in options}
    positions = RelativeVectors(
        num_buckets=4, max_distance=6, normalize=normalize, initializer_range=0.5, name="positions", **kept
    )
    chosen = {ours: name in kinds for name, ours in KINDS.items()}
    options = {"initializer_range": 0.4, "name": "attention", **options}
    return DisentangledSelfAttention(3, positions=positions, shares_projections=shares, **chosen, **options)


def backbone_of(**options):
    keras.utils.set_random_seed(7)
    attention = DisentangledSelfAttention(3, shares_projections=True, **options)
    positions = RelativeVectors(num_buckets=4, max_distance=6, normalize=True, initializer_range=0.5)
    return BertBackbone(CONFIG, parts=EncoderParts(attention=attention, positions=positions))


@pytest.fixture
def inputs():
    generator = np.random.default_rng(4)
    ids = {"token_ids": generator.integers(0, 29, (3, 6)), "segment_ids": generator.integers(0, 2, (3, 6))}
    return {**{name: values.astype("int32") for name, values in ids.items()}, "padding_mask": MASK}


@pytest.mark.parametrize(
    ("kinds", "shares", "normalize"),
    [(("c2p", "p2c"), True, True), (("c2p", "p2c"), False, False), (("c2p",), True, False), (("p2c",), False, True)],
)
def test_probabilities(kinds, shares, normalize, draw):
    layer, hidden = make(kinds, shares=shares, normalize=normalize), draw(3, 6, 12)
    layer.build(hidden.shape)
    for weight in layer.weights:
        weight.assign(draw(*weight.shape) * 0.4)
    weights = {weight.path.split("attention/", 1)[-1]: np.asarray(weight) for weight in layer.weights}
    vectors = np.asarray(layer.positions.vectors, "float64")
    if normalize:
        norm = layer.positions.layer_norm
        vectors = normalized(vectors, np.asarray(norm.gamma), np.asarray(norm.beta), norm.epsilon)
    rows = layer.positions.rows
    expected = probabilities(hidden, weights, rows, vectors, MASK, 3, kinds=kinds, shares=shares)
    output, found = layer(hidden, MASK, return_attention_scores=True)
    np.testing.assert_allclose(np.asarray(found), expected, atol=FLOAT32)
    first, found = layer(hidden, MASK, first_token_only=True, return_attention_scores=True)
    np.testing.assert_allclose(np.asarray(found), expected[:, :, :1], atol=FLOAT32)
    np.testing.assert_allclose(np.asarray(first), np.asarray(output)[:, 0], atol=FLOAT32)


@pytest.mark.parametrize(
    ("long_row", "kinds"),
    [
        (4, ("c2p", "p2c")),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((6, ("c2p", "p2c")), (4, ("p2c",)), (4, ()))),
    ],
)
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="other backends take no turns")
def test_turns(long_row, kinds, draw, monkeypatch):
    """A head of a row after the other, and a row after the other, with lengths that are known and that are not."""
    import tensorflow as tf

    layer, hidden = make(kinds, normalize=True), draw(3, 6, 12)
    expected = np.asarray(layer(hidden, MASK))
    monkeypatch.setattr(attention_kernels, "_MANY_SCORES", 10)
    monkeypatch.setattr(attention_kernels, "LONG_ROW", long_row)
    layer.reads_long_rows = True
    open_sizes = [tf.TensorSpec([None, None, 12]), tf.TensorSpec([None, None], "int32")]
    for call in (layer, tf.function(layer, input_signature=open_sizes)):
        np.testing.assert_allclose(np.asarray(call(hidden, MASK))[MASK > 0], expected[MASK > 0], atol=FLOAT32)
    turns, in_turns = [], attention_kernels.InTurns._in_turns
    monkeypatch.setattr(attention_kernels.InTurns, "_in_turns", lambda *parts: turns.append(1) or in_turns(*parts))
    for options in ({}, {"training": True}, {"return_attention_scores": True}):  # the last two need all scores
        layer(hidden, MASK, **options)
    assert turns == [1]


@pytest.mark.parametrize(("shares", "num_weights"), [pytest.param(True, 13, marks=pytest.mark.slow), (False, 19)])
def test_contract(shares, num_weights, check_layer, draw, tmp_path):
    def block(**options):
        kept = {key: options[key] for key in ("dtype",) if key in options}
        attention = make(shares=shares, normalize=not shares, **kept)
        return TransformerEncoderBlock(3, 11, attention=attention, dropout=0.0, initializer_range=0.4, **options)

    check_layer(
        block,
        {"hidden": draw(3, 6, 12), "padding_mask": MASK},
        output_shape=(3, 6, 12),
        num_weights=num_weights,
        places=MASK.astype(bool),
        tmp_path=tmp_path,
    )


def test_packed_rows_and_files(inputs, tmp_path):
    backbone = backbone_of()
    expected = np.asarray(backbone(inputs)["sequence_output"])
    backbone.save(tmp_path / "backbone.keras")
    again = keras.models.load_model(tmp_path / "backbone.keras")
    np.testing.assert_array_equal(np.asarray(again(inputs)["sequence_output"]), expected)
    numbers = np.array([[1, 1, 1, 2, 2, 2], [1, 2, 2, 0, 0, 0], [1, 1, 1, 1, 1, 1]], "int32")
    backbone.packed_rows = True
    packed = {**inputs, "padding_mask": numbers}
    found = np.asarray(backbone(packed)["sequence_output"])
    for row, columns in ((0, slice(0, 3)), (0, slice(3, 6)), (1, slice(1, 3))):
        text = {key: value[row : row + 1, columns] for key, value in inputs.items()}
        alone = np.asarray(backbone({**text, "padding_mask": 0 * text["token_ids"] + 1})["sequence_output"])
        np.testing.assert_allclose(found[row, columns], alone[0], atol=FLOAT32)


@pytest.mark.parametrize("in_graph", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_rematerialized_training_drops_the_same(in_graph, inputs):
    """Both dropouts, that of probabilities and that of vectors, are repeated; all weights are trained."""

    def make_task():
        return BertClassifier(backbone_of(dropout=0.3, vector_dropout=0.4), num_classes=2, dropout=0.0)

    def prepare(task):
        keras.utils.set_random_seed(3)
        for layer in task.backbone._flatten_layers():
            if hasattr(layer, "seed_generator"):
                layer.seed_generator.state.assign([5, 9])

    assert_equal_steps(make_task, inputs, run_eagerly=not in_graph, atol=FLOAT32, prepare=prepare)


def test_vectors_are_dropped_in_training_only(draw):
    layer, hidden = make(vector_dropout=0.5), draw(2, 5, 12)
    quiet, other = layer(hidden), layer(hidden)
    np.testing.assert_array_equal(np.asarray(quiet), np.asarray(other))
    assert np.abs(np.asarray(layer(hidden, training=True)) - np.asarray(quiet)).max() > 1e-3


def test_one_set_of_vectors_and_lora(inputs):
    backbone = backbone_of()
    paths = [weight.path for weight in backbone.weights]
    assert [path for path in paths if path.startswith("positions/")] == [
        *("positions/vectors", "positions/layer_norm/gamma", "positions/layer_norm/beta")
    ]
    smaller = reduce_layers(backbone, 1)
    hidden = backbone.get_layer("embedding")(inputs["token_ids"], inputs["segment_ids"])
    expected = np.asarray(backbone.get_layer("encoder_block_0")(hidden, MASK))
    np.testing.assert_array_equal(np.asarray(smaller(inputs)["sequence_output"]), expected)
    backbone.enable_lora(2)
    assert len(backbone.trainable_weights) == 2 * 4 * 2  # blocks, dense layers, matrices


def test_lora_reaches_the_positions(draw):
    """As in PEFT: a shared projection has what it learned for positions too."""
    layer, hidden = make(shares=True), draw(2, 5, 12)
    layer.build(hidden.shape)
    dense = layer.query_key_value
    dense.enable_lora(2)
    dense.lora_kernel_b.assign(draw(2, 36) * 0.1)
    found = np.asarray(layer(hidden))
    merged = make(shares=True)
    merged.build(hidden.shape)
    for name in ("vectors",):
        getattr(merged.positions, name).assign(getattr(layer.positions, name))
    merged.query_key_value.kernel.assign(dense.kernel)
    merged.query_key_value.bias.assign(dense.bias)
    merged.output_projection.kernel.assign(layer.output_projection.kernel)
    np.testing.assert_allclose(found, np.asarray(merged(hidden)), atol=FLOAT32)


def test_no_other_model_type_has_it(tmp_path):
    """transformers' config has one LayerNorm epsilon, and no number for the dropout of vectors."""
    with pytest.raises(ValueError, match="`model.parts` must be BERT's own"):
        save_huggingface(backbone_of(vector_dropout=0.3), tmp_path / "model")


def test_other_positions():
    text = "`DisentangledSelfAttention`: `positions` must be a RelativeVectors."
    with pytest.raises(TypeError, match=re.escape(text)):
        DisentangledSelfAttention(2, positions=RotaryPositions())(ops.ones((1, 3, 4)))
