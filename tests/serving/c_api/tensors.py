"""The format of strings and tensors that `serve.c` reads and writes; its head comment describes it."""

from __future__ import annotations

import struct
from typing import BinaryIO

import numpy as np

STRING = 7
# TF_DataType of tensorflow/c/tf_datatype.h, as far as signatures use it.
NUMBERS = {1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 9: np.int64, 10: np.bool_}
CODES = {np.dtype(dtype): code for code, dtype in NUMBERS.items()}


def read(stream: BinaryIO, size: int) -> bytes:
    """Reads exactly the given number of bytes."""
    found = stream.read(size)
    if len(found) != size:
        raise EOFError(f"The other side has ended: wanted {size} bytes, got {len(found)}.")
    return found


def read_numbers(stream: BinaryIO, layout: str) -> tuple:
    """Reads numbers in a layout of the module `struct`."""
    return struct.unpack(f"<{layout}", read(stream, struct.calcsize(f"<{layout}")))


def read_string(stream: BinaryIO) -> bytes:
    """A length and its bytes."""
    return read(stream, *read_numbers(stream, "Q"))


def read_tensor(stream: BinaryIO) -> np.ndarray:
    """A tensor; strings as bytes in an array of objects."""
    code, rank = read_numbers(stream, "II")
    shape = read_numbers(stream, f"{rank}q")
    count = int(np.prod(shape, dtype=np.int64))
    if code == STRING:
        values = np.empty(count, object)
        for index in range(count):
            values[index] = read_string(stream)
        return values.reshape(shape)
    dtype = np.dtype(NUMBERS[code])
    return np.frombuffer(read(stream, count * dtype.itemsize), dtype).reshape(shape)


def string(value: bytes) -> bytes:
    """Encodes a string."""
    return struct.pack("<Q", len(value)) + value


def numbers(layout: str, *values: float) -> bytes:
    """Encodes numbers in a layout of the module `struct`."""
    return struct.pack(f"<{layout}", *values)


def tensor(values: np.ndarray) -> bytes:
    """Encodes a tensor."""
    values = np.asarray(values)
    is_string = values.dtype.kind in "OSU"
    code = STRING if is_string else CODES[values.dtype]
    head = struct.pack(f"<II{values.ndim}q", code, values.ndim, *values.shape)
    if not is_string:
        return head + np.ascontiguousarray(values).tobytes()
    texts = (value.encode() if isinstance(value, str) else value for value in values.ravel())
    return head + b"".join(map(string, texts))
