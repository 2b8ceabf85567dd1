import json
import struct
import tracemalloc

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.safetensors_file import MAX_HEADER_BYTES, SafetensorsFile, write_safetensors
from keras_bert_layers.checkpoints.files.tensor_file import TensorInfo, read_into
from keras_bert_layers.checkpoints.files.tensor_views import joined_tensors


def write_raw(path, header, data=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


def entry(dtype, shape, start, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_reads_floats_as_float32(path, dtype):
    rng = np.random.default_rng(0)
    tensors = {"b": rng.normal(size=(3, 5)).astype(dtype), "a": rng.normal(size=7).astype(dtype)}
    save_file(tensors, path)
    file = SafetensorsFile(path)
    assert {name: info.shape for name, info in file.infos.items()} == {"a": (7,), "b": (3, 5)}
    for name, tensor in tensors.items():
        assert file.read(name).dtype == np.float32
        np.testing.assert_array_equal(file.read(name), tensor.astype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_reads_into_a_part_of_an_array(path, dtype):
    tensor = np.arange(15).reshape(3, 5).astype(dtype)
    save_file({"x": tensor, "empty": tensor[:0]}, path)
    view = joined_tensors([("a.", SafetensorsFile(path))])
    read_into(view, "a.empty", np.ones((0, 5), np.float32))
    whole, columns = np.full((5, 5), 9, np.float32), np.full((3, 7), 9, np.float32)
    read_into(view, "a.x", whole[1:4])
    read_into(view, "a.x", columns[:, 1:6])
    np.testing.assert_array_equal(whole, np.pad(tensor, ((1, 1), (0, 0)), constant_values=9))
    np.testing.assert_array_equal(columns, np.pad(tensor, ((0, 0), (1, 1)), constant_values=9))


def test_reads_bfloat16_exactly(path):
    # 1, -2.5, the largest finite bfloat16 and its smallest subnormal: sign, exponent and fraction bits as they stand.
    bits = np.array([0x3F80, 0xC020, 0x7F7F, 0x0001], "<u2")
    write_raw(path, {"x": entry("BF16", [2, 2], 0, 8)}, bits.tobytes())
    values = SafetensorsFile(path).read("x")
    np.testing.assert_array_equal(
        values, np.array([[1, -2.5], [3.3895313892515355e38, 9.183549615799121e-41]], "float32")
    )
    assert values.dtype == np.float32


def test_reads_scalars_and_empty_tensors(path):
    save_file({"scalar": np.array(3, "float32"), "empty": np.zeros((0, 4), "float32")}, path)
    file = SafetensorsFile(path)
    assert file.read("scalar").shape == ()
    assert file.read("scalar") == 3
    assert file.read("empty").shape == (0, 4)


def test_other_dtypes_are_known_but_not_read(path):
    save_file({"ids": np.arange(3)}, path)
    file = SafetensorsFile(path)
    assert file.infos["ids"].dtype == "I64"
    with pytest.raises(CheckpointError, match=r"tensor 'ids' must hold floats, one of .*'F32'.*\. Received: I64"):
        file.read("ids")


@pytest.mark.parametrize("kept", [0, 5, 8, 40, -1])
def test_truncated(path, kept):
    save_file({"x": np.arange(9, dtype="float32")}, path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(
        CheckpointError, match=r"model\.safetensors: not a complete safetensors file: .*copy the file again"
    ):
        SafetensorsFile(path)


def test_header_longer_than_the_file(path):
    path.write_bytes(struct.pack("<Q", 2**60) + b"{}")
    with pytest.raises(CheckpointError, match=r"a header of 1152921504606846976 bytes, a file of 10 bytes"):
        SafetensorsFile(path)


def test_header_longer_than_the_bound(path):
    write_raw(path, b"{" + b" " * MAX_HEADER_BYTES + b"}")
    with pytest.raises(CheckpointError, match=f"take at most {MAX_HEADER_BYTES} bytes"):
        SafetensorsFile(path)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param({"x": entry("F32", [10**12], 0, 4 * 10**12)}, id="terabytes"),
        pytest.param({"x": entry("F32", [2**62, 2**62], 0, 4)}, id="overflow"),
        pytest.param({"x": entry("F32", [2], 0, 4)}, id="shape unlike the place"),
        pytest.param({"x": entry("F32", [1], 0, 4), "y": entry("F32", [1], 0, 4)}, id="overlap"),
        pytest.param({"x": entry("F32", [0], 0, 0)}, id="file not filled"),
        pytest.param({"x": entry("Q4", [1], 0, 4)}, id="unknown dtype"),
        pytest.param({"x": entry("F32", [-1], 0, 4)}, id="negative size"),
        pytest.param({"x": [1]}, id="no entry"),
        pytest.param(b"{nope", id="no JSON"),
        pytest.param(b"[" * 9999, id="deep"),
        pytest.param(b"\xff\xfe{}", id="no UTF-8"),
    ],
)
def test_damaged_header(path, header):
    with pytest.raises(
        CheckpointError, match=r"model\.safetensors: not a complete safetensors file: .*copy the file again"
    ):
        SafetensorsFile(write_raw(path, header, b"four"))


@pytest.mark.parametrize("shape", [[1] * 99, [0, 2**62, 2**62]], ids=["axes", "elements"])
def test_shapes_that_no_array_has(path, shape):
    data = b"" if 0 in shape else b"four"
    write_raw(path, {"x": entry("F32", shape, 0, len(data))}, data)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: tensor 'x' has a shape that no array has"):
        SafetensorsFile(path).read("x")


def test_too_large_for_float32(path):
    save_file({"x": np.array([1e300, 1])}, path)
    np.testing.assert_array_equal(SafetensorsFile(path).read("x"), np.array([np.inf, 1], "float32"))


def test_name_twice(path):
    one = json.dumps(entry("F32", [1], 0, 4))
    write_raw(path, f'{{"x": {one}, "x": {one}}}'.encode(), b"four")
    with pytest.raises(CheckpointError, match=r"names the tensors \['x'\] twice"):
        SafetensorsFile(path)


def test_cut_after_opening(path):
    save_file({"x": np.arange(9, dtype="float32")}, path)
    file = SafetensorsFile(path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(CheckpointError, match=r"the file ends inside tensor 'x'"):
        file.read("x")


SHAPES = {"b.weight": (3, 5), "a": (7,), "É": (2, 3, 1), "B": (), "b.bias": (0, 4), "a.b": (1,)}


@pytest.fixture
def arrays():
    rng = np.random.default_rng(6)
    return {name: rng.normal(size=shape).astype("float32") for name, shape in SHAPES.items()}


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


def test_a_checkpoint_is_never_in_memory_completely(path, in_memory):
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
