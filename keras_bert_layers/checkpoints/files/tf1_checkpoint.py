"""Reads and writes TensorFlow checkpoints, one tensor at a time and without TensorFlow."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert_layers._internal.files.wire_format import field, fixed32_field, read_fields
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged, naming
from keras_bert_layers.checkpoints.files.index_table import DAMAGED_CURE, masked_crc32c, read_table, table_bytes
from keras_bert_layers.checkpoints.files.tensor_file import (
    STORED_DTYPES,
    TensorFile,
    TensorInfo,
    check_not_pointer,
    stored_dtype,
    to_float32,
)

# tensorflow/core/framework/types.proto, by safetensors' names.
_DTYPES = {1: "F32", 2: "F64", 3: "I32", 4: "U8", 5: "I16", 6: "I8", 7: "STRING", 9: "I64", 10: "BOOL"}
_DTYPES |= {14: "BF16", 17: "U16", 19: "F16", 22: "U32", 23: "U64"}
_FLOAT = 1

# The fields of BundleHeaderProto, BundleEntryProto, TensorShapeProto and its Dim.
_NUM_SHARDS, _ENDIANNESS, _VERSION, _PRODUCER = 1, 2, 3, 1
_DTYPE, _SHAPE, _SHARD, _OFFSET, _SIZE, _CRC, _SLICES = range(1, 8)
_DIM, _DIM_SIZE, _UNKNOWN_RANK = 2, 1, 3

_HEADER_KEY = b""


class BundleEntry(NamedTuple):
    """The entry of one tensor.

    Args:
        info: its dtype and shape.
        shard: the index of its data file.
        offset: its first byte in that file.
        size: its number of bytes.
        crc: the masked CRC-32C of these bytes.
    """

    info: TensorInfo
    shard: int
    offset: int
    size: int
    crc: int


def read_index(path: Path) -> tuple[int, dict[str, BundleEntry]]:
    """Reads the index of a checkpoint.

    Args:
        path: the file that ends in `.index`.

    Returns:
        The number of data files, and the entries by the tensors' names.

    Raises:
        CheckpointError: the file is damaged, or describes big-endian values or variables in parts.
        OSError: it cannot be read.
    """
    table = read_table(path)
    if _HEADER_KEY not in table:
        raise CheckpointError(f"{path}: the index of this checkpoint lacks its header. {DAMAGED_CURE}")
    with damaged(f"{path}: the index of this checkpoint cannot be read", ValueError, DAMAGED_CURE):
        num_shards = _num_shards(table.pop(_HEADER_KEY))
        return num_shards, {key.decode(): _entry(message, num_shards) for key, message in table.items()}


def index_bytes(entries: Mapping[str, BundleEntry]) -> bytes:
    """The index of a checkpoint with one data file of float32 values; `read_index` reads it back.

    References:
        tensorflow/core/protobuf/tensor_bundle.proto; tensorflow/core/util/tensor_bundle/tensor_bundle.cc.
    """
    table = {_HEADER_KEY: field(_NUM_SHARDS, 1) + field(_VERSION, field(_PRODUCER, 1))}
    for name, entry in entries.items():
        dims = b"".join(field(_DIM, field(_DIM_SIZE, length)) for length in entry.info.shape)
        offset = field(_OFFSET, entry.offset) if entry.offset else b""  # protocol buffers leave zeros out
        position = offset + field(_SIZE, entry.size)
        table[name.encode()] = field(_DTYPE, _FLOAT) + field(_SHAPE, dims) + position + fixed32_field(_CRC, entry.crc)
    return table_bytes(table)


def _num_shards(header: bytes) -> int:
    values = dict(read_fields(header))
    num_shards = values.get(_NUM_SHARDS, 0)
    if not isinstance(num_shards, int) or num_shards < 1:
        raise ValueError("it must name at least one data file")
    if values.get(_ENDIANNESS, 0) != 0:
        raise ValueError("its values are big-endian")
    return num_shards


def _entry(message: bytes, num_shards: int) -> BundleEntry:
    """Reads and checks the entry of one tensor."""
    values = dict(read_fields(message))
    if _SLICES in values:
        raise ValueError("it holds a variable in parts; with TensorFlow, save it in one piece")
    dtype, shard, offset, size, crc = (_integer(values, key) for key in (_DTYPE, _SHARD, _OFFSET, _SIZE, _CRC))
    info = TensorInfo(_DTYPES.get(dtype, f"type {dtype}"), _shape(values.get(_SHAPE, b"")))
    if shard >= num_shards:
        raise ValueError(f"a tensor is in file {shard} of {num_shards}, counted from 0")
    if info.dtype in STORED_DTYPES and size != math.prod(info.shape) * np.dtype(STORED_DTYPES[info.dtype]).itemsize:
        raise ValueError(f"a tensor of type {info.dtype} and shape {info.shape} cannot take {size} bytes")
    return BundleEntry(info, shard, offset, size, crc)


def _shape(message: int | bytes) -> tuple[int, ...]:
    if not isinstance(message, bytes):
        raise ValueError("a field has the wrong type")
    shape = []
    for number, value in read_fields(message):
        if number == _UNKNOWN_RANK and value:
            raise ValueError("a tensor has no shape")
        if number == _DIM and isinstance(value, bytes):
            shape.append(_integer(dict(read_fields(value)), _DIM_SIZE))
    return tuple(shape)


def _integer(values: Mapping[int, int | bytes], key: int) -> int:
    value = values.get(key, 0)
    if not isinstance(value, int) or value >= 2**63:  # from there on they mean negative integers
        raise ValueError("a field has the wrong type")
    return value


class Tf1Checkpoint:
    """The tensors of a TensorFlow checkpoint, as `tf.train.Saver` writes it. Every BERT by Google is one.

    A checkpoint is a prefix, such as `bert_model.ckpt`, and files that begin with it: `.index` gives the dtype, shape
    and position of each tensor, and `.data-00000-of-00001` (or several) the values, one tensor after another. Opening
    reads the index and checks its checksums and the files' sizes. Values are read by `read` only, which checks the
    checksum of the tensor. The `.meta` file, a graph, is not read.

    TensorFlow is not needed, so Google's checkpoints load with every backend of Keras, and an error about a damaged
    file names it.

    Args:
        prefix: the path without `.index`.

    Raises:
        CheckpointError: a file is missing, truncated or damaged, or holds variables in parts.

    Examples:
        >>> import tempfile, pathlib
        >>> prefix = pathlib.Path(tempfile.mkdtemp(), "bert_model.ckpt")
        >>> class Ones:
        ...     infos = {"bert/pooler/dense/bias": TensorInfo("F32", (3,))}
        ...     def read(self, name):
        ...         return np.ones(3, "float32")
        >>> write_tf1_checkpoint(prefix, Ones())
        >>> checkpoint = Tf1Checkpoint(prefix)
        >>> checkpoint.infos
        {'bert/pooler/dense/bias': TensorInfo(dtype='F32', shape=(3,))}
        >>> checkpoint.read("bert/pooler/dense/bias")
        array([1., 1., 1.], dtype=float32)

    References:
        tensorflow/core/util/tensor_bundle/tensor_bundle.h.
    """

    def __init__(self, prefix: Path):
        self.path = index_path(prefix)
        self._prefix = prefix
        check_not_pointer(self.path)
        with naming(self.path):
            self._num_shards, self._entries = read_index(self.path)
        self._check_sizes()
        self.infos = {name: entry.info for name, entry in self._entries.items()}

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32; see `TensorFile.read`."""
        entry = self._entries[name]
        dtype, shape = entry.info
        path = data_path(self._prefix, entry.shard, self._num_shards)
        stored = stored_dtype(path, name, dtype)
        count = entry.size // stored.itemsize
        with naming(path):
            array = np.fromfile(path, dtype=stored, count=count, offset=entry.offset)
        if array.size != count or masked_crc32c(array) != entry.crc:
            raise CheckpointError(f"{path}: tensor {name!r} is damaged: its checksum is wrong. {DAMAGED_CURE}")
        return to_float32(array, dtype).reshape(shape)

    def _check_sizes(self) -> None:
        """Checks that every data file exists and is long enough for its tensors."""
        ends: dict[int, int] = {}
        for entry in self._entries.values():
            ends[entry.shard] = max(ends.get(entry.shard, 0), entry.offset + entry.size)
        for shard, end in sorted(ends.items()):
            path = data_path(self._prefix, shard, self._num_shards)
            with naming(path):
                size = path.stat().st_size
            if size < end:
                check_not_pointer(path)
                raise CheckpointError(
                    f"{path}: the file is truncated: it must have {end} bytes. Received: {size} bytes. {DAMAGED_CURE}"
                )


def write_tf1_checkpoint(prefix: Path, tensors: TensorFile) -> None:
    """Writes tensors as a TensorFlow checkpoint with one data file, like Google's releases.

    One tensor is in memory at a time. The bytes depend on the tensors alone, and are those that `tf.train.Saver`
    writes for the same names and values.

    Args:
        prefix: the path without `.index`; existing files are replaced.
        tensors: the tensors; names are kept, values are stored as float32.

    Raises:
        OSError: a file cannot be written.
    """
    entries: dict[str, BundleEntry] = {}
    with data_path(prefix, 0, 1).open("wb") as file:
        for name in sorted(tensors.infos, key=str.encode):
            shape = tensors.infos[name].shape
            array = np.ascontiguousarray(tensors.read(name), dtype="<f4")
            entries[name] = BundleEntry(
                TensorInfo("F32", shape), 0, offset=file.tell(), size=array.nbytes, crc=masked_crc32c(array)
            )
            file.write(array.data)
    index_path(prefix).write_bytes(index_bytes(entries))


def index_checksum(prefix: Path) -> int:
    """A checksum of a checkpoint's names and values: its index holds the checksum of each tensor.

    Raises:
        CheckpointError: the index is missing or cannot be read.
    """
    path = index_path(prefix)
    with naming(path):
        return masked_crc32c(path.read_bytes())


def index_path(prefix: Path) -> Path:
    """The file with the position of each tensor."""
    return prefix.with_name(f"{prefix.name}.index")


def data_path(prefix: Path, shard: int, num_shards: int) -> Path:
    """A data file."""
    return prefix.with_name(f"{prefix.name}.data-{shard:05}-of-{num_shards:05}")
