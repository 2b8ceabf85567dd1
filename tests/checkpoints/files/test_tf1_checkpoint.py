import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers._internal.files.wire_format import field
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.index_table import read_table, table_bytes
from keras_bert_layers.checkpoints.files.tensor_file import FLOAT_DTYPES, TensorInfo
from keras_bert_layers.checkpoints.files.tf1_checkpoint import (
    BundleEntry,
    Tf1Checkpoint,
    index_bytes,
    read_index,
    write_tf1_checkpoint,
)

INDEX, DATA = "bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"


def arrays():
    rng = np.random.default_rng(3)
    named = {
        f"bert/encoder/layer_{layer}/{name}": rng.normal(size=(layer + 1, size)).astype("float32")
        for layer in range(11)
        for size, name in enumerate(("kernel", "beta", "intermediate/dense/bias"), start=1)
    }
    return {
        **named,
        "bert/embeddings/word_embeddings": rng.normal(size=(701, 37)).astype("float32"),
        "step": np.ones(()),
    }


def saved_by_tensorflow(prefix, values):
    names = sorted(values)  # as tf.train.Saver sorts them
    tensors = [tf.constant(values[name]) for name in names]
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)
    return prefix


@pytest.fixture
def prefix(tmp_path, in_memory):
    """A checkpoint in two files."""
    write_tf1_checkpoint(tmp_path / "bert_model.ckpt", in_memory(arrays()))
    return tmp_path / "bert_model.ckpt"


def test_tensorflow_reads_what_is_written(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    assert dict(tf.train.list_variables(str(prefix))) == {name: list(array.shape) for name, array in arrays().items()}
    for name, array in arrays().items():
        found = reader.get_tensor(name)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, array.astype("float32"))


def test_the_bytes_are_those_of_tensorflow(prefix, tmp_path):
    saved_by_tensorflow(tmp_path / "theirs", {name: array.astype("float32") for name, array in arrays().items()})
    assert sorted(path.name for path in tmp_path.glob("bert_model*")) == [DATA, INDEX]
    for name in (INDEX, DATA):
        assert (tmp_path / name).read_bytes() == (tmp_path / name.replace("bert_model.ckpt", "theirs")).read_bytes()


def test_reads_what_tensorflow_wrote(tmp_path):
    values = {
        "a": np.arange(6, dtype="float32").reshape(2, 3),
        "b": np.array([1.5, -2.5], "float64"),
        "c": np.array([[0.25]], "float16"),
        "d": tf.constant([1.0, -3.0], tf.bfloat16),
        "global_step": np.int64(7),
        "text": np.array([b"word", b""]),
    }
    checkpoint = Tf1Checkpoint(saved_by_tensorflow(tmp_path / "model.ckpt-7", values))
    infos = {name: tuple(info) for name, info in checkpoint.infos.items()}
    assert infos == {
        "a": ("F32", (2, 3)),
        "b": ("F64", (2,)),
        "c": ("F16", (1, 1)),
        "d": ("BF16", (2,)),
        "global_step": ("I64", ()),
        "text": ("STRING", (2,)),
    }
    for name in "abcd":
        array = checkpoint.read(name)
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, np.asarray(values[name], "float32"))
    with pytest.raises(CheckpointError, match=r"tensor 'global_step' must hold floats, one of .*Received: I64"):
        checkpoint.read("global_step")


def test_several_files_of_numbers(tmp_path):
    parts = [f"{tmp_path}/part-{number}" for number in range(2)]
    values = [{"a": np.ones((2, 3), "float32")}, {"b": np.arange(5, dtype="float32"), "c": np.zeros(1, "float32")}]
    for part, value in zip(parts, values, strict=True):
        saved_by_tensorflow(part, value)
    prefix = tmp_path / "model.ckpt"
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=str(prefix))
    checkpoint = Tf1Checkpoint(prefix)
    for name, array in {**values[0], **values[1]}.items():
        np.testing.assert_array_equal(checkpoint.read(name), array)
    (tmp_path / "model.ckpt.data-00001-of-00002").unlink()
    with pytest.raises(CheckpointError, match=r"model\.ckpt\.data-00001-of-00002: the file is missing\. Copy all"):
        Tf1Checkpoint(prefix)


def test_a_view_is_written_as_it_reads(tmp_path, in_memory):
    array = np.arange(12, dtype="float32").reshape(3, 4)
    write_tf1_checkpoint(tmp_path / "a", in_memory({"x": array.T, "y": array[:, 1:3]}))
    checkpoint = Tf1Checkpoint(tmp_path / "a")
    np.testing.assert_array_equal(checkpoint.read("x"), array.T)
    np.testing.assert_array_equal(checkpoint.read("y"), array[:, 1:3])


@pytest.mark.parametrize("name", [INDEX, DATA])
def test_missing_file(prefix, name):
    (prefix.parent / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{re.escape(name)}: the file is missing\. Copy all files"):
        Tf1Checkpoint(prefix)


def test_truncated_numbers(prefix):
    path = prefix.parent / DATA
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-5])
    message = rf"{DATA}: the file is truncated: it must have {size} bytes\. Received: {size - 5} bytes\. Download"
    with pytest.raises(CheckpointError, match=message):
        Tf1Checkpoint(prefix)


def test_numbers_that_shrink_after_opening(prefix):
    checkpoint = Tf1Checkpoint(prefix)
    path = prefix.parent / DATA
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=rf"{DATA}: tensor 'step' is damaged"):
        checkpoint.read("step")


def test_truncated_index(prefix):
    path = prefix.parent / INDEX
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CheckpointError, match=rf"{INDEX}: not a complete index of a TensorFlow checkpoint"):
        Tf1Checkpoint(prefix)


def test_damaged_numbers(prefix):
    path = prefix.parent / DATA
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(bytes(data))
    checkpoint = Tf1Checkpoint(prefix)
    with pytest.raises(
        CheckpointError, match=rf"{DATA}: tensor 'bert/embeddings/word_embeddings' is damaged: its check"
    ):
        checkpoint.read("bert/embeddings/word_embeddings")
    checkpoint.read("step")


def test_a_directory_in_the_place_of_a_file(prefix):
    path = prefix.parent / DATA
    path.unlink()
    path.mkdir()
    with pytest.raises(CheckpointError, match=DATA):
        Tf1Checkpoint(prefix).read("step")


def test_no_room(tmp_path, in_memory):
    with pytest.raises(OSError, match="No space left on device"):
        write_tf1_checkpoint(FullDisk(tmp_path / "x"), in_memory(arrays()))


class FullDisk(type(Path())):
    """A prefix on a disk without room."""

    def with_name(self, name):
        return type(self)("/dev/full")


def mutated(data, rng):
    """A few bytes changed, taken out, put in or repeated."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(data) + 1))
        match rng.integers(4):
            case 0:
                data[at : at + 1] = rng.integers(0, 256, 1, np.uint8).tobytes()
            case 1:
                del data[at : at + int(rng.integers(1, 30))]
            case 2:
                data[at:at] = rng.integers(0, 256, rng.integers(1, 30), np.uint8).tobytes()
            case 3:
                data[at : at + 4] = data[:4]
    return bytes(data)


def with_a_mutated_entry(path, rng):
    """A complete table, checksums included, with damage in one value."""
    table = read_table(path)
    key = list(table)[rng.integers(len(table))]
    return table_bytes({**table, key: mutated(table[key], rng)})


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["bytes of the file", "an entry under right checksums"])
def test_ten_thousand_damaged_indexes(prefix, kind):
    """An error that names the file, or a load; never another exception, never numbers that were not written."""
    path = prefix.parent / INDEX
    whole, written = path.read_bytes(), arrays()
    rng = np.random.default_rng(7)
    messages = []
    for _ in range(5_000):
        path.write_bytes(whole)
        path.write_bytes(mutated(whole, rng) if kind == "bytes of the file" else with_a_mutated_entry(path, rng))
        try:
            checkpoint = Tf1Checkpoint(prefix)
            for name, info in checkpoint.infos.items():
                if info.dtype in FLOAT_DTYPES:
                    array = checkpoint.read(name)
                    if info.dtype == "F32":  # a checksum does not see the same bytes under another dtype
                        np.testing.assert_array_equal(array.ravel(), written[name].ravel())
        except CheckpointError as error:
            messages.append(str(error))
    assert len(messages) > 2_500
    assert all(str(prefix) in message for message in messages)


HEADER = field(1, 1)
SHAPE = field(2, field(2, field(1, 3)) + field(2, field(1, 5)))
ENTRY = field(1, 1) + SHAPE + field(5, 60)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.ckpt.index"


def test_round_trip(path):
    entries = {
        "a": BundleEntry(TensorInfo("F32", (3, 5)), 0, 0, 60, 0xFFFFFFFF),
        "é/b": BundleEntry(TensorInfo("F32", ()), 0, 60, 4, 0),
    }
    path.write_bytes(index_bytes(entries))
    assert read_index(path) == (1, entries)


@pytest.mark.parametrize(
    ("number", "dtype"), [(2, "F64"), (3, "I32"), (7, "STRING"), (9, "I64"), (14, "BF16"), (19, "F16"), (21, "type 21")]
)
def test_dtypes(path, number, dtype):
    size = {"F64": 120, "F16": 30, "BF16": 30}.get(dtype, 99)
    path.write_bytes(table_bytes({b"": HEADER, b"a": field(1, number) + SHAPE + field(5, size)}))
    assert read_index(path)[1]["a"].info == TensorInfo(dtype, (3, 5))


def test_no_header(path):
    path.write_bytes(table_bytes({b"a": ENTRY}))
    with pytest.raises(CheckpointError, match=r"model\.ckpt\.index: the index of this checkpoint lacks its header\."):
        read_index(path)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({b"": b""}, "it must name at least one data file"),
        ({b"": HEADER + field(2, 1)}, "its values are big-endian"),
        (
            {b"": HEADER, b"a": ENTRY + field(7, b"")},
            "it holds a variable in parts; with TensorFlow, save it in one piece",
        ),
        ({b"": HEADER, b"a": ENTRY + field(3, 1)}, "a tensor is in file 1 of 1, counted from 0"),
        ({b"": HEADER, b"a": ENTRY + field(5, 59)}, "a tensor of type F32 and shape (3, 5) cannot take 59 bytes"),
        ({b"": HEADER, b"a": ENTRY + field(4, 2**64 - 1)}, "a field has the wrong type"),
        ({b"": HEADER, b"a": ENTRY + field(1, b"1")}, "a field has the wrong type"),
        ({b"": HEADER, b"a": field(1, 1) + field(2, 3)}, "a field has the wrong type"),
        ({b"": HEADER, b"a": field(1, 1) + field(2, field(3, 1))}, "a tensor has no shape"),
        ({b"": HEADER, b"\xff": ENTRY}, "'utf-8' codec can't decode"),
    ],
)
def test_not_read(path, values, text):
    path.write_bytes(table_bytes(values))
    message = f"{path}: the index of this checkpoint cannot be read: {text}"
    with pytest.raises(CheckpointError, match=re.escape(message)):
        read_index(path)
