import re

import pytest

from keras_bert_layers._internal.files.wire_format import field
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.index_table import table_bytes
from keras_bert_layers.checkpoints.files.tensor_file import TensorInfo
from keras_bert_layers.checkpoints.files.tf1_checkpoint import BundleEntry, index_bytes, read_index

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
        ({b"": HEADER, b"a": ENTRY + field(7, b"")}, "it holds a variable in parts; with TensorFlow, save it whole"),
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
