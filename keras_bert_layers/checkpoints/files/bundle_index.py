"""The index of a TensorFlow checkpoint: dtype, shape, position and checksum of each tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert_layers._internal.wire_format import field, fixed32_field, read_fields
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged
from keras_bert_layers.checkpoints.files.index_table import DAMAGED_CURE, read_table, table_bytes
from keras_bert_layers.checkpoints.files.tensor_file import STORED_DTYPES, TensorInfo

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
        raise ValueError("it holds a variable in parts; with TensorFlow, save it whole")
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
