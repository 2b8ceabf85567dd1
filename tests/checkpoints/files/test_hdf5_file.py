import importlib

import h5py
import numpy as np
import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.hdf5_file import Hdf5File, write_hdf5

NAME = "layers/dense/vars/0"


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "model.weights.h5", "w") as file:
        file[NAME] = np.arange(6, dtype="float32").reshape(2, 3)
        file["layers/dense/vars/1"] = np.ones(3, "float16")
        file["layers/empty/vars/0"] = np.ones((0, 4), "float32")
        file["optimizer/vars/0"] = np.int64(7)
    return tmp_path / "model.weights.h5"


def edit(path, change):
    with h5py.File(path, "a") as file:
        change(file)
    return path


def test_names_and_numbers(path):
    file = Hdf5File(path)
    assert {name: tuple(info) for name, info in file.infos.items()} == {
        "layers/dense/vars/0": ("F32", (2, 3)),
        "layers/dense/vars/1": ("F16", (3,)),
        "layers/empty/vars/0": ("F32", (0, 4)),
        "optimizer/vars/0": ("I64", ()),
    }
    np.testing.assert_array_equal(file.read(NAME), [[0, 1, 2], [3, 4, 5]])
    assert file.read("layers/dense/vars/1").dtype == np.float32


def test_bfloat16_as_keras_stores_it(path):
    bfloat16 = importlib.import_module("ml_dtypes").bfloat16  # Keras brings it
    values = np.array([[1.5, -2.0, 3.0e38]])

    def change(file):
        file.create_dataset("layers/half/vars/0", data=values.astype(bfloat16)).attrs["dtype"] = "bfloat16"

    file = Hdf5File(edit(path, change))
    assert file.infos["layers/half/vars/0"].dtype == "BF16"
    np.testing.assert_array_equal(file.read("layers/half/vars/0"), values.astype(bfloat16).astype("float32"))


def test_integers_are_not_read(path):
    with pytest.raises(
        CheckpointError, match=r"model\.weights\.h5: tensor 'optimizer/vars/0' must hold floats, one of .*I64"
    ):
        Hdf5File(path).read("optimizer/vars/0")


def test_truncated(path):
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"model\.weights\.h5: not a whole HDF5 file: .*truncated.*Download"):
        Hdf5File(path)


@pytest.mark.parametrize("content", [b"", b"not an HDF5 file", b"\x89HDF\r\n\x1a\n" + bytes(90)])
def test_no_hdf5_file(path, content):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="not a whole HDF5 file"):
        Hdf5File(path)


def test_every_damaged_byte_gives_an_error_or_a_right_file(path):
    whole = path.read_bytes()
    right = Hdf5File(path).infos
    rng = np.random.default_rng(2)
    for _ in range(300):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            file = Hdf5File(path)
            for name, (dtype, _) in file.infos.items():
                if dtype in ("F32", "F16", "F64") and name in right:
                    file.read(name)
        except CheckpointError:
            continue


def test_shape_without_numbers(path):
    def change(file):
        file.create_dataset("layers/bomb/vars/0", shape=(1 << 20, 1 << 20), dtype="float32", chunks=(64, 64))

    with pytest.raises(CheckpointError, match=r"'layers/bomb/vars/0' must hold the 4398046511104 bytes.*: 0 bytes"):
        Hdf5File(edit(path, change))


def test_compressed(path):
    def change(file):
        file.create_dataset("layers/zip/vars/0", data=np.zeros((99, 99)), compression="gzip")

    with pytest.raises(CheckpointError, match=r"'layers/zip/vars/0' must hold the 78408 bytes of its shape \(99, 99\)"):
        Hdf5File(edit(path, change))


@pytest.mark.parametrize("link", [h5py.SoftLink("/layers"), h5py.ExternalLink("/etc/hosts", "/a")])
def test_links(path, link):
    def change(file):
        file["layers/other"] = link

    with pytest.raises(CheckpointError, match=r"'layers/other' must not be a link. Do not trust this checkpoint"):
        Hdf5File(edit(path, change))


def test_numbers_in_another_file(path, tmp_path):
    (tmp_path / "other").write_bytes(bytes(400))

    def change(file):
        file.create_dataset("elsewhere", shape=(100,), dtype="float32", external=[(str(tmp_path / "other"), 0, 400)])

    with pytest.raises(CheckpointError, match=r"'elsewhere' must be stored in this file"):
        Hdf5File(edit(path, change))


def test_virtual_numbers(path):
    def change(file):
        layout = h5py.VirtualLayout(shape=(2, 3), dtype="float32")
        layout[...] = h5py.VirtualSource(str(path), NAME, shape=(2, 3))
        file.create_virtual_dataset("virtual", layout)

    with pytest.raises(CheckpointError, match=r"'virtual' must be stored in this file"):
        Hdf5File(edit(path, change))


def test_a_group_in_itself(path):
    def change(file):
        file["layers/again"] = file["layers"]

    with pytest.raises(CheckpointError, match=r"'layers(/again)+' is deeper, or among more entries"):
        Hdf5File(edit(path, change))


def test_file_that_changed_since(path):
    file = Hdf5File(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=rf"tensor '{NAME}' cannot be read"):
        file.read(NAME)


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
