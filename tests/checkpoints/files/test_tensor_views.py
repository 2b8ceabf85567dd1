import json
import struct

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_layers import load_backbone
from keras_bert_layers.checkpoints import CheckpointError, load_report
from keras_bert_layers.checkpoints.files.safetensors_file import SafetensorsFile
from keras_bert_layers.checkpoints.files.tensor_views import ScaledTensors, sharded_tensors

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


def test_tensor_in_another_file_than_the_index_states(index):
    with pytest.raises(CheckpointError, match=rf"the tensor 'c' must be in '{FIRST}', which lacks it"):
        opened(index, {"a": FIRST, "b": FIRST, "c": FIRST})


def test_tensor_that_the_index_does_not_know(index):
    with pytest.raises(CheckpointError, match=rf"'{FIRST}' holds 'b', which the index does not list"):
        opened(index, {"a": FIRST, "c": SECOND})


DTYPES = {"uint8": "F8_E4M3", "int8": "I8", "float32": "F32", "float16": "F16"}


def write(path, tensors):
    """A safetensors file in which bytes are floats of 8 bits."""
    header, data = {}, b""
    for name, array in tensors.items():
        span = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": array.shape, "data_offsets": span}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def scaled(path):
    return ScaledTensors(SafetensorsFile(path), path)


def test_every_float_of_8_bits(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    codes = np.arange(256, dtype="uint8").reshape(16, 16)
    found = scaled(write(tmp_path / "x.safetensors", {"a.weight": codes, "a.weight_scale": np.float32([0.5])}))
    expected = codes.view(ml_dtypes.float8_e4m3fn).astype("float32") * 0.5
    np.testing.assert_array_equal(found.read("a.weight"), expected)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("shape", [(), (1,), (4,), (4, 1), (4, 3)])
def test_scales(tmp_path, dtype, shape):
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 120, (4, 6)).astype(dtype)
    scale = rng.random(shape).astype("float32")
    tensors = {"a.weight": codes, "a.weight_scale": scale, "b": np.ones(2, "float16"), "c_scale": np.ones(1, "float32")}
    found = scaled(write(tmp_path / "x.safetensors", tensors))
    assert {name: info.dtype for name, info in found.infos.items()} == {"a.weight": "F32", "b": "F16", "c_scale": "F32"}
    whole = np.ones((), "float32")
    plain = scaled(write(tmp_path / "y.safetensors", {"a.weight": codes, "a.weight_scale": whole})).read("a.weight")
    each = {(4,): scale[..., None], (4, 3): np.kron(scale, np.ones((1, 2), "float32"))}.get(shape, scale)
    expected = plain * each
    np.testing.assert_array_equal(found.read("a.weight"), expected)


@pytest.mark.parametrize("shape", [(6,), (3,), (4, 4), (1, 6), (4, 1, 1), (0,), (4, 0)])
def test_scales_that_do_not_fit(tmp_path, shape):
    tensors = {"a.weight": np.ones((4, 6), "int8"), "a.weight_scale": np.ones(shape, "float32")}
    with pytest.raises(CheckpointError, match=r"'a\.weight_scale' of shape .* does not fit its weight, \(4, 6\)"):
        scaled(write(tmp_path / "x.safetensors", tensors))


def test_more_than_a_scale(tmp_path):
    tensors = {"a.weight": np.ones((4, 6), "int8"), "a.weight_scale": np.ones(1, "float32")}
    path = write(tmp_path / "x.safetensors", {**tensors, "a.weight_zero_point": np.ones(1, "int8")})
    with pytest.raises(CheckpointError, match=r"must have a scale only\. Found: 'a\.weight_zero_point' too"):
        scaled(path)


def test_integers_without_scales_are_not_weights(tmp_path):
    found = scaled(write(tmp_path / "x.safetensors", {"a.weight": np.ones((4, 6), "int8")}))
    with pytest.raises(CheckpointError, match=r"must hold floats.*Received: I8"):
        found.read("a.weight")


def test_a_complete_checkpoint(checkpoint):
    tensors = load_file(checkpoint / "model.safetensors")
    for name in [name for name in tensors if name.endswith("dense.weight")]:
        scale = np.abs(tensors[name]).max(axis=1, keepdims=True) / 127
        tensors[name] = np.rint(tensors[name] / scale).astype("int8")
        tensors[f"{name}_scale"] = scale
    write(checkpoint / "model.safetensors", tensors)
    backbone = load_backbone(checkpoint)
    assert load_report(backbone).notes == ("7 tensors of 8 bits were multiplied by their scales",)
    name = "encoder.layer.0.intermediate.dense.weight"
    kernel = next(weight for weight in backbone.weights if "block_0/feed_forward/intermediate/kernel" in weight.path)
    np.testing.assert_array_equal(kernel.numpy(), (tensors[name].astype("float32") * tensors[f"{name}_scale"]).T)


@pytest.mark.peers
def test_against_torch(torch, tmp_path):
    weight, scale = torch.randn(8, 6), torch.rand(8, 1)
    codes = (weight / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    tensors = {"a.weight": codes.view(torch.uint8).numpy(), "a.weight_scale": scale.numpy()}
    found = scaled(write(tmp_path / "x.safetensors", tensors)).read("a.weight")
    np.testing.assert_array_equal(found, (codes.float() * scale).numpy())
