"""Arrays stand for tensors here: what they have in common is a dtype and a shape."""

import numpy as np
import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.torch_file import weights_entry

MODEL = {"bert.embeddings.word_embeddings.weight": np.ones((3, 2)), "bert.pooler.dense.bias": np.ones(2)}
OPTIMIZER = {"state": {0: {"step": np.ones(()), "exp_avg": np.ones(2)}}, "param_groups": [{"lr": 0.1, "params": [0]}]}


def found(content):
    return weights_entry("best.pt", content)


@pytest.mark.parametrize("name", ["model", "state_dict", "model_state_dict", "module", "net"])
def test_entries_of_training_loops(name):
    entry = found({"epoch": 3, "optimizer": OPTIMIZER, name: MODEL, "loss": np.ones(())})
    assert (entry.path, entry.tensors) == (name, MODEL)
    assert entry.others == ("epoch", "optimizer", "loss")


def test_plain_tensors_go_first():
    entry = found({**MODEL, "step": 7, "note": "best"})
    assert (entry.path, list(entry.tensors), entry.others) == ("", list(MODEL), ("step", "note"))


def test_nested_entries():
    entry = found({"checkpoint": {"model": {**MODEL, "version": 2}, "epoch": 1}, "args": {}})
    assert (entry.path, list(entry.tensors), entry.others) == (
        "checkpoint/model",
        list(MODEL),
        ("args", "epoch", "version"),
    )


def test_tensors_without_an_embedding():
    """A dense layer of sentence-transformers, or a head alone."""
    assert found({"linear.weight": np.ones((2, 2)), "linear.bias": np.ones(2)}).path == ""
    assert found({"model": {"linear.bias": np.ones(2)}, "epoch": 1}).path == "model"


def test_several_models():
    message = (
        r"must hold one model\. Found: the weights of 2, in the entries 'model', 'ema/shadow'\. .*\[\'model\'\], NEW"
    )
    with pytest.raises(CheckpointError, match=message):
        found({"model": MODEL, "ema": {"shadow": MODEL}})
    with pytest.raises(CheckpointError, match=r"in the entries '', 'ema'\. .*\['ema'\]"):
        found({**MODEL, "ema": MODEL})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], r"must hold a dictionary of tensors\. Received: list"),
        ({}, "Found: nothing"),
        ({"epoch": 3, "a": {"b": {}}}, "Found: 'epoch', 'a'"),
        ({"a": {"b": {"c": {"d": {"e": MODEL}}}}}, "Found: 'a'"),
        ({0: np.ones(2)}, "Found: 0"),
    ],
)
def test_no_tensors(content, message):
    with pytest.raises(CheckpointError, match=message):
        found(content)
