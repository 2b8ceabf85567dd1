import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.safetensors_file import SafetensorsFile
from keras_bert_layers.checkpoints.files.tensor_views import sharded_tensors

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def index(tmp_path):
    save_file({"a": np.ones(3, "float32"), "b": np.zeros(2, "float32")}, tmp_path / FIRST)
    save_file({"c": np.arange(5, dtype="float16")}, tmp_path / SECOND)
    return tmp_path / "model.safetensors.index.json"


def opened(index, weight_map):
    index.write_text(json.dumps({"metadata": {"total_size": 30}, "weight_map": weight_map}))
    return sharded_tensors(index, SafetensorsFile)


def test_reads_from_every_shard(index):
    tensors = opened(index, {"c": SECOND, "a": FIRST, "b": FIRST})
    assert {name: info.shape for name, info in tensors.infos.items()} == {"a": (3,), "b": (2,), "c": (5,)}
    np.testing.assert_array_equal(tensors.read("c"), np.arange(5, dtype="float32"))
    np.testing.assert_array_equal(tensors.read("a"), np.ones(3, "float32"))


def test_missing_shard(index):
    (index.parent / SECOND).unlink()
    with pytest.raises(CheckpointError, match=rf"the shard '{SECOND}' is missing"):
        opened(index, {"a": FIRST, "b": FIRST, "c": SECOND})


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "a/b", "..", ".", "", "a\\b", "a\0b"])
def test_shard_outside_the_directory(index, name):
    save_file({"a": np.ones(3, "float32")}, index.parent.parent / "x.safetensors")
    with pytest.raises(CheckpointError, match=r"a shard must be a file of the same directory"):
        opened(index, {"a": name})


@pytest.mark.parametrize("weight_map", [None, ["a"], {"a": 1}])
def test_not_a_map(index, weight_map):
    with pytest.raises(CheckpointError, match=r"index\.json: `weight_map` must give a file name for each tensor"):
        opened(index, weight_map)


def test_tensor_elsewhere_than_the_index_says(index):
    with pytest.raises(CheckpointError, match=rf"the tensor 'c' must be in '{FIRST}', which lacks it"):
        opened(index, {"a": FIRST, "b": FIRST, "c": FIRST})


def test_tensor_that_the_index_does_not_know(index):
    with pytest.raises(CheckpointError, match=rf"'{FIRST}' holds 'b', which the index does not list"):
        opened(index, {"a": FIRST, "c": SECOND})
