import tracemalloc

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from keras_bert_layers.checkpoints.files.safetensors_file import SafetensorsFile, write_safetensors
from keras_bert_layers.checkpoints.files.tensor_file import TensorInfo

SHAPES = {"b.weight": (3, 5), "a": (7,), "É": (2, 3, 1), "B": (), "b.bias": (0, 4), "a.b": (1,)}


@pytest.fixture
def arrays():
    rng = np.random.default_rng(6)
    return {name: rng.normal(size=shape).astype("float32") for name, shape in SHAPES.items()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


# The header's own length changes by one from name to name, so every padding occurs.
@pytest.mark.parametrize("more", range(8))
def test_bytes_of_the_library(arrays, path, tmp_path, more, in_memory):
    arrays["x" * (more + 1)] = np.ones(2, "float32")
    write_safetensors(path, in_memory(arrays))
    save_file(arrays, tmp_path / "theirs", metadata={"format": "pt"})
    assert path.read_bytes() == (tmp_path / "theirs").read_bytes()


def test_bytes_of_the_library_without_metadata(arrays, path, tmp_path, in_memory):
    write_safetensors(path, in_memory(arrays), metadata={})
    save_file(arrays, tmp_path / "theirs")
    assert path.read_bytes() == (tmp_path / "theirs").read_bytes()


def test_read_back(arrays, path, in_memory):
    write_safetensors(path, in_memory(arrays))
    ours, theirs = SafetensorsFile(path), load_file(path)
    assert ours.infos.keys() == theirs.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(ours.read(name), array)
        np.testing.assert_array_equal(theirs[name], array)
    with safe_open(path, framework="np") as file:
        assert file.metadata() == {"format": "pt"}


def test_views_and_other_formats_are_written_as_float32(path, in_memory):
    rng = np.random.default_rng(7)
    kernel, half = rng.normal(size=(4, 9)).astype("float32"), rng.normal(size=3).astype("float16")
    bits = np.array([0x7FC00001, 0x80000000, 0x00000001], "<u4").view("<f4")  # a NaN's own bits, -0, a subnormal
    write_safetensors(
        path, in_memory({"view": kernel[:, 3:6].T, "half": half, "bits": bits, "big": half.astype(">f4")})
    )
    written = load_file(path)
    np.testing.assert_array_equal(written["view"], kernel[:, 3:6].T)
    np.testing.assert_array_equal(written["half"], half.astype("float32"))
    np.testing.assert_array_equal(written["big"], half.astype("float32"))
    assert written["bits"].tobytes() == bits.tobytes()


def test_a_checkpoint_is_never_whole_in_memory(path, in_memory):
    class Numbered:
        def __init__(self):
            self.infos = {f"layer.{index}": TensorInfo("F32", (256, 1024)) for index in range(16)}

        def read(self, name):
            return np.full((1024, 256), int(name.split(".")[1]), "float32").T

    tracemalloc.start()
    write_safetensors(path, Numbered())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    one = 256 * 1024 * 4
    assert peak < 2.5 * one  # a tensor, and its contiguous copy
    assert path.stat().st_size > 16 * one


def test_a_tensor_of_another_shape(path, in_memory):
    class Wrong(in_memory):
        def read(self, name):
            return np.zeros((2, 2), "float32")

    with pytest.raises(ValueError, match=r"tensor 'x' must have shape \(3,\)\. Received: \(2, 2\)"):
        write_safetensors(path, Wrong({"x": np.zeros(3, "float32")}))
