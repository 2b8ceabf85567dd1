"""`TokenConvolution` beside its definition, and in blocks: rows of several texts, dropout, files, fewer blocks."""

import re

import keras
import numpy as np
import pytest
from disentangled_reference import normalized
from rematerialized_step import assert_equal_steps

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig
from keras_bert_layers.layers import EncoderParts, TokenConvolution, TransformerEncoderBlock
from keras_bert_layers.tasks import reduce_layers

# Float32 sums, against float64.
FLOAT32 = 1e-5
# A hole, as in masks of one's own, is as far as the rest of the padding.
MASK = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0]], "int32")
TEXTS = np.array([[1, 1, 1, 2, 2, 2], [1, 2, 2, 0, 0, 0], [1, 1, 1, 1, 1, 1]], "int32")
CONFIG = BertConfig(
    vocabulary_size=29, hidden_dim=12, num_layers=2, num_heads=3, intermediate_dim=20, max_sequence_length=11,
    initializer_range=0.3, dropout=0.0, attention_dropout=0.0,
)  # fmt: skip


def block(**options):
    kept = {key: options[key] for key in ("dtype",) if key in options}
    convolution = TokenConvolution(5, initializer_range=0.3, name="convolution", **kept)
    options = {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.4, **options}
    return TransformerEncoderBlock(3, 11, convolution=convolution, **options)


def backbone_of(**options):
    keras.utils.set_random_seed(7)
    convolution = TokenConvolution(3, activation="relu", initializer_range=0.3, **options)
    return BertBackbone(CONFIG, parts=EncoderParts(convolution=convolution))


@pytest.fixture
def inputs():
    generator = np.random.default_rng(4)
    ids = {"token_ids": generator.integers(0, 29, (3, 6)), "segment_ids": generator.integers(0, 2, (3, 6))}
    return {**{name: values.astype("int32") for name, values in ids.items()}, "padding_mask": MASK}


@pytest.mark.parametrize(("mask", "packed"), [(MASK, False), (TEXTS, True)])
def test_sums(mask, packed, draw):
    layer, hidden, output = TokenConvolution(5), draw(3, 6, 4), draw(3, 6, 4)
    layer.build(hidden.shape)
    for weight in layer.weights:
        weight.assign(draw(*weight.shape))
    kernel, bias, *norm = (np.asarray(weight, "float64") for weight in layer.weights)
    sums = np.zeros(hidden.shape) + bias
    for row, own, k in np.ndindex(3, 6, 5):
        near = own + k - 2
        if 0 <= near < 6 and mask[row, near] == mask[row, own]:
            sums[row, own] += hidden[row, near] @ kernel[k]
    expected = normalized(output + np.tanh(sums), *norm, layer.layer_norm_epsilon)
    found = layer(hidden, output, mask, packed_rows=packed)
    np.testing.assert_allclose(np.asarray(found)[mask > 0], expected[mask > 0], atol=FLOAT32)
    first = layer(hidden, output[:, 0], mask, packed_rows=packed, first_token_only=True)
    np.testing.assert_allclose(np.asarray(first), expected[:, 0], atol=FLOAT32)


@pytest.mark.slow
def test_contract(check_layer, draw, tmp_path):
    inputs = {"hidden": draw(3, 6, 12), "padding_mask": MASK}
    place = {"places": MASK.astype(bool), "tmp_path": tmp_path}
    check_layer(block, inputs, output_shape=(3, 6, 12), num_weights=16, **place)


@pytest.mark.parametrize("in_graph", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_packed_rows_and_files(in_graph, inputs, tmp_path):
    backbone = backbone_of()

    def run(batch):
        return np.asarray((backbone.predict_on_batch if in_graph else backbone)(batch)["sequence_output"])

    expected = run(inputs)
    backbone.save(tmp_path / "backbone.keras")
    again = keras.models.load_model(tmp_path / "backbone.keras")
    np.testing.assert_allclose(np.asarray(again(inputs)["sequence_output"])[MASK > 0], expected[MASK > 0], atol=FLOAT32)
    backbone.packed_rows = True
    found = run({**inputs, "padding_mask": TEXTS})
    for row, columns in ((0, slice(0, 3)), (0, slice(3, 6)), (1, slice(1, 3))):
        text = {key: value[row : row + 1, columns] for key, value in inputs.items()}
        alone = run({**text, "padding_mask": 0 * text["token_ids"] + 1})
        np.testing.assert_allclose(found[row, columns], alone[0], atol=FLOAT32)


@pytest.mark.slow
@pytest.mark.parametrize("in_graph", [False, True])
def test_rematerialized_training_drops_the_same(in_graph, inputs):
    def make_task():
        return BertClassifier(backbone_of(dropout=0.4), num_classes=2, dropout=0.0)

    def prepare(task):
        task.backbone.blocks[0].convolution.dropout_layer.seed_generator.state.assign([5, 9])

    assert_equal_steps(make_task, inputs, run_eagerly=not in_graph, atol=FLOAT32, prepare=prepare)


def test_the_first_block_has_it(inputs):
    backbone = backbone_of()
    assert [block.convolution is None for block in backbone.blocks] == [False, True]
    smaller = reduce_layers(backbone, 1)
    hidden = backbone.get_layer("embedding")(inputs["token_ids"], inputs["segment_ids"])
    expected = np.asarray(backbone.blocks[0](hidden, MASK))
    outputs = smaller(inputs)
    np.testing.assert_array_equal(np.asarray(outputs["sequence_output"]), expected)
    pooled = np.asarray(backbone.get_layer("pooler")(expected[:, 0]))
    np.testing.assert_allclose(np.asarray(outputs["pooled_output"]), pooled, atol=FLOAT32)
    with pytest.raises(ValueError, match=re.escape("`keep` must give each place")):
        reduce_layers(backbone, [1])


def test_what_is_refused():
    with pytest.raises(ValueError, match=re.escape("`kernel_size` must be odd")):
        TokenConvolution(2)
    with pytest.raises(ValueError, match="`shares_block` must be False beside .*`convolution`"):
        EncoderParts(convolution=TokenConvolution(3), shares_block=True)
