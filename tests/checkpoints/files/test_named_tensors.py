import numpy as np
import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.tensor_views import NamedTensors, renamed


def test_renames(in_memory):
    file = in_memory({"model.a": np.ones(2), "b": np.zeros((3, 1))})
    found = renamed(file, lambda name: name.removeprefix("model."), "x.bin")
    assert {name: info.shape for name, info in found.infos.items()} == {"a": (2,), "b": (3, 1)}
    np.testing.assert_array_equal(found.read("a"), np.ones(2))
    assert isinstance(found, NamedTensors)
    assert renamed(file, str, "x.bin") is file


def test_two_tensors_of_one_name(in_memory):
    file = in_memory({"model.a": np.ones(2), "a": np.zeros(2)})
    with pytest.raises(CheckpointError, match=r"x\.bin: must hold one model\. Found: the tensors 'model\.a' and 'a'"):
        renamed(file, lambda name: name.removeprefix("model."), "x.bin")
