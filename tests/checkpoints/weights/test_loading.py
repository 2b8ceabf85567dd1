"""Loading from tensors in memory: all are checked before the first weight changes."""

import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig
from keras_bert_layers.checkpoints import CheckpointError, load_report
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.weights.loading import load_weights
from keras_bert_layers.checkpoints.weights.model_tensors import ModelTensors
from keras_bert_layers.checkpoints.weights.table import Layout, backbone_rows

CONFIG = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
ROWS = backbone_rows(CONFIG)
WORDS, POOLER = "embeddings.word_embeddings.weight", "pooler.dense.weight"


class Stored(HuggingFaceDirectory):
    """A checkpoint without files, which warns of no key."""

    config = CONFIG
    config_values = {"model_type": "bert"}  # noqa: RUF012


@pytest.fixture(scope="module")
def model():
    return BertBackbone(CONFIG)


@pytest.fixture(scope="module")
def arrays(model):
    tensors = ModelTensors(BertBackbone(CONFIG), ROWS, Layout.HUGGINGFACE, num_heads=2)
    return {name: np.array(tensors.read(name)) for name in tensors.infos}


@pytest.fixture
def load(model, arrays, in_memory, tmp_path):
    """Loads the arrays with changes; None removes one."""

    def load(changes, **options):
        changed = {name: array for name, array in {**arrays, **changes}.items() if array is not None}
        return load_weights(model, ROWS, Stored(tmp_path, owner="load_backbone"), in_memory(changed), **options)

    return load


def test_all_weights_are_loaded(load, model, arrays):
    report = load({})
    assert len(report.loaded) == len(ROWS)
    assert not report.ignored
    assert load_report(model) is report
    tensors = ModelTensors(model, ROWS, Layout.HUGGINGFACE, num_heads=2)
    for name, array in arrays.items():
        np.testing.assert_array_equal(tensors.read(name), array)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({WORDS: None}, rf"the model needs 1 tensors that the weights file lacks: {WORDS}\. It holds embeddings"),
        ({"encoder.layer.1.x": np.ones(2)}, r"1 tensors that the model has no weight for: encoder\.layer\.1\.x\."),
        ({WORDS: np.ones((10, 8), "float32")}, r"vocabulary size must equal the embedding's 10 rows"),
        ({POOLER: np.ones((8, 7), "float32")}, rf"'{POOLER}' must have shape \(8, 8\)\. Received: shape=\(8, 7\)"),
        ({"pooler.dense.bias": None}, r"lacks: pooler\.dense\.bias\."),
    ],
)
def test_nothing_changes_if_a_tensor_does_not_fit(load, model, changes, text):
    before = [np.array(weight) for weight in model.weights]
    with pytest.raises(CheckpointError, match=text):
        load(changes)
    for weight, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight, value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(load, arrays, value):
    damaged = arrays[WORDS].copy()
    damaged[2, 3] = value
    with pytest.raises(CheckpointError, match=f"'{WORDS}' holds NaN or infinity"):
        load({WORDS: damaged})


def test_without_a_pooler(load, model):
    without = {POOLER: None, "pooler.dense.bias": None}
    with pytest.raises(CheckpointError, match=r"reads the pooled output, and the weights file lacks the pooler: poo"):
        load(without, needs_pooler=True)
    assert load(without).newly_initialized == ("pooler/dense/kernel", "pooler/dense/bias")
    assert not np.array(model.get_layer("pooler").weights[1]).any()


def test_unknown_tensors(load):
    other = {"mlp.dense.weight": np.ones(2), "cls.predictions.bias": np.ones(9)}
    report = load(other)
    assert report.ignored == {"mlp.dense.weight": "unknown", "cls.predictions.bias": "a pretraining head"}
    with pytest.raises(CheckpointError, match=r"strict=True allows no unknown .*Received: mlp\.dense\.weight\."):
        load(other, strict=True)
