import h5py
import numpy as np
import pytest

from keras_bert_layers.checkpoints.hdf5_file import Hdf5File
from keras_bert_layers.checkpoints.hdf5_writer import write_hdf5

TENSORS = {
    "layers/dense/vars/0": np.arange(6, dtype="float32").reshape(3, 2).T,
    "layers/dense/vars/1": np.float16([1, 2, 65504]),
    "layers/a/b/vars/0": np.zeros((0, 4), "float32"),
}


@pytest.fixture
def source(tmp_path):
    with h5py.File(tmp_path / "source", "w") as file:
        for name, tensor in TENSORS.items():
            file[name] = tensor
    return Hdf5File(tmp_path / "source")


def test_all_tensors_as_float32(source, tmp_path):
    write_hdf5(tmp_path / "model.weights.h5", source)
    file = Hdf5File(tmp_path / "model.weights.h5")
    assert {info.dtype for info in file.infos.values()} == {"F32"}
    assert set(file.infos) == set(TENSORS)
    for name, tensor in TENSORS.items():
        np.testing.assert_array_equal(file.read(name), tensor)


def test_same_tensors_same_bytes(source, tmp_path):
    for name in ("one", "two"):
        write_hdf5(tmp_path / name, source)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
