"""`extend_positions` puts more positions after the old ones; `interpolate_positions` stretches the old ones."""

import re

import keras
import numpy as np
import pytest

from keras_bert_layers import (
    BertBackbone,
    BertClassifier,
    BertConfig,
    BertPreprocessor,
    load_backbone,
    save_huggingface,
)
from keras_bert_layers.layers import EncoderParts, RotaryPositions
from keras_bert_layers.tasks import extend_positions, interpolate_positions

# float64 sums, rounded to float32.
FLOAT32 = 1e-6
# Two float32 implementations of a block.
PEERS = 1e-5


def make(length=5, **options):
    keras.utils.set_random_seed(5)
    sizes = {"vocabulary_size": 18, "hidden_dim": 8, "num_layers": 1, "num_heads": 2, "intermediate_dim": 7}
    return BertBackbone(BertConfig(**sizes, max_sequence_length=length, initializer_range=0.3, **options))


def ids(length, rows=2, vocabulary_size=18):
    tokens = np.random.default_rng(3).integers(3, vocabulary_size, (rows, length)).astype("int32")
    return {"token_ids": tokens, "segment_ids": 0 * tokens, "padding_mask": 0 * tokens + 1}


def positions(backbone):
    return keras.ops.convert_to_numpy(backbone.get_layer("embedding").position_embedding)


@pytest.mark.parametrize("offset", [0, 2])
def test_extended_values(offset):
    old = make(position_offset=offset)
    new = extend_positions(old, 17, alpha=0.3)
    table, longer = positions(old), positions(new)
    assert longer.shape == (offset + 17, 8)
    np.testing.assert_array_equal(longer[: offset + 5], table)
    table = table[offset:].astype("float64")
    parts = [(row - 0.3 * table[0]) / 0.7 for row in table]
    for position in range(17):
        expected = 0.3 * parts[position // 5] + 0.7 * parts[position % 5]
        np.testing.assert_allclose(longer[offset + position], expected, atol=FLOAT32)
    short = ids(5)
    np.testing.assert_array_equal(np.asarray(new(short)["sequence_output"]), np.asarray(old(short)["sequence_output"]))
    assert np.isfinite(np.asarray(new(ids(17))["sequence_output"])).all()
    assert positions(old).shape == (offset + 5, 8)


@pytest.mark.usefixtures("traces_nothing")
def test_a_task_reads_longer_texts(tokenizer):
    task = BertClassifier(make(), num_classes=2, preprocessor=BertPreprocessor(tokenizer, max_length=5))
    task.backbone.enable_lora(2)
    longer = extend_positions(task, 20)
    texts = ["a good film", "bad"]
    np.testing.assert_array_equal(longer.predict(texts, verbose=0), task.predict(texts, verbose=0))
    longer.preprocessor = BertPreprocessor(tokenizer, max_length=20)
    assert longer.predict(["good " * 15], verbose=0).shape == (1, 2)
    assert longer.backbone.lora_rank == 2


def test_minilm(minilm):
    backbone = load_backbone(minilm)
    inputs = ids(512, rows=1, vocabulary_size=30522)
    expected = np.asarray(backbone(inputs)["sequence_output"])
    np.testing.assert_array_equal(np.asarray(extend_positions(backbone, 600)(inputs)["sequence_output"]), expected)


@pytest.mark.peers
def test_transformers_loads_it(transformers, torch, tmp_path):
    new = extend_positions(make(), 17)
    save_huggingface(new, tmp_path / "model")
    theirs = transformers.AutoModel.from_pretrained(tmp_path / "model").eval()
    inputs = ids(17)
    with torch.no_grad():
        found = theirs(input_ids=torch.tensor(inputs["token_ids"].astype("int64"))).last_hidden_state.numpy()
    np.testing.assert_allclose(np.asarray(new(inputs)["sequence_output"]), found, atol=PEERS)


@pytest.mark.parametrize(
    ("length", "alpha", "text"),
    [
        (5, 0.4, "`max_sequence_length` must be at least 6, more than the model has"),
        (26, 0.4, "`max_sequence_length` must be at most 25, the square of what the model has"),
        (9, 0.5, "`alpha` must be above 0, below 1 and not 0.5"),
        (9, 0, "`alpha` must be above 0, below 1 and not 0.5"),
        (9, 1, "`alpha` must be at least 0 and less than 1"),
    ],
)
def test_errors(length, alpha, text):
    with pytest.raises(ValueError, match=re.escape(f"`extend_positions`: {text}")):
        extend_positions(make(), length, alpha=alpha)


def test_other_models():
    with pytest.raises(TypeError, match="`extend_positions`: `model` must be a task or a BertBackbone"):
        extend_positions(keras.Sequential(), 9)
    rotary = BertBackbone(make().config, parts=EncoderParts(positions=RotaryPositions()))
    with pytest.raises(ValueError, match="`extend_positions`: `model` must have a trained position embedding"):
        extend_positions(rotary, 9)


@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize(("old_length", "length"), [(5, 13), (5, 7), (1, 3)])
def test_interpolated_values(old_length, length, offset):
    old = make(old_length, position_offset=offset)
    new = interpolate_positions(old, length)
    table, longer = positions(old), positions(new)
    np.testing.assert_array_equal(longer[:offset], table[:offset])
    table, longer = table[offset:], longer[offset:]
    assert longer.shape == (length, 8)
    places = np.arange(length) * (old_length - 1) / (length - 1)
    expected = np.stack([np.interp(places, np.arange(old_length), column) for column in table.T], axis=1)
    np.testing.assert_allclose(longer, expected, atol=FLOAT32)
    np.testing.assert_array_equal(longer[[0, -1]], table[[0, -1]])
    for ours, theirs in zip(new.weights, old.weights, strict=True):
        if "position" not in ours.path:
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_errors_of_interpolation():
    with pytest.raises(ValueError, match="`interpolate_positions`: `max_sequence_length` must be at least 6"):
        interpolate_positions(make(5), 5)
    with pytest.raises(TypeError, match="`interpolate_positions`: `max_sequence_length` must be an integer"):
        interpolate_positions(make(5), 7.5)
