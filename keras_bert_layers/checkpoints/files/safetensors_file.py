"""Reads and writes `.safetensors` files, one tensor at a time."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged
from keras_bert_layers.checkpoints.files.tensor_file import (
    DAMAGED_CURE,
    TensorFile,
    TensorInfo,
    check_not_pointer,
    stored_dtype,
    to_float32,
)

# A tensor takes some 120 bytes of header; BERT-large with all its heads has about 400.
MAX_HEADER_BYTES = 8 * 1024 * 1024

_LENGTH_BYTES = 8

# The values begin at a multiple of this, so that a program can use them directly in a mapped file.
_ALIGNMENT = 8
_STORED = np.dtype("<f4")

# transformers refuses a file without this entry; "pt" is what it writes for every framework.
METADATA = {"format": "pt"}


class SafetensorsFile:
    """The tensors of one `.safetensors` file.

    A file is 8 bytes with the header's length, a JSON header with the dtype, shape and position of each tensor, and the
    values. Opening checks the length before anything of that size is read. Then the library `safetensors` checks the
    header: tensors follow each other without overlap and fill the file. Values are read by `read` only, without mapping
    the file into memory.

    Args:
        path: the file.

    Raises:
        CheckpointError: the file is truncated, or its header is damaged or larger than any BERT's.

    Examples:
        >>> import tempfile, pathlib, safetensors.numpy
        >>> path = pathlib.Path(tempfile.mkdtemp(), "model.safetensors")
        >>> safetensors.numpy.save_file({"pooler.dense.bias": np.ones(3, "float16")}, path)
        >>> file = SafetensorsFile(path)
        >>> file.infos
        {'pooler.dense.bias': TensorInfo(dtype='F16', shape=(3,))}
        >>> file.read("pooler.dense.bias")
        array([1., 1., 1.], dtype=float32)

    References:
        https://github.com/huggingface/safetensors#format
    """

    def __init__(self, path: Path):
        self.path = path
        check_not_pointer(path)
        header = self._header()
        self._data_start = _LENGTH_BYTES + len(header)
        what = f"{path}: not a complete safetensors file"
        with damaged(what, SafetensorError, DAMAGED_CURE), safe_open(path, framework="np"):
            pass
        pairs = json.loads(header, object_pairs_hook=list)
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        if twice:
            raise CheckpointError(f"{path}: the header names the tensors {twice} twice. {DAMAGED_CURE}")
        self._entries = {name: dict(entry) for name, entry in pairs if name != "__metadata__"}
        self.infos = {name: TensorInfo(entry["dtype"], tuple(entry["shape"])) for name, entry in self._entries.items()}

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32; see `TensorFile.read`."""
        dtype, shape = self.infos[name]
        stored = stored_dtype(self.path, name, dtype)
        array = self.read_bytes(name).view(stored)
        # NumPy has at most 64 axes, and 2**63 elements even if one axis is 0.
        with damaged(f"{self.path}: tensor {name!r} has a shape that no array has", ValueError):
            return to_float32(array, dtype).reshape(shape)

    def read_bytes(self, name: str) -> np.ndarray:
        """Reads the bytes of one tensor of any dtype, as a flat uint8 array."""
        start, end = self._entries[name]["data_offsets"]
        array = np.empty(end - start, np.uint8)
        self._fill(name, array)
        return array

    def read_into(self, name: str, place: np.ndarray) -> None:
        """Reads one tensor of a float dtype into a float32 array of its shape; a second array is made if it must be."""
        if self.infos[name].dtype == "F32" and place.flags.c_contiguous:
            self._fill(name, place.reshape(-1).view(np.uint8))
        else:
            place[...] = self.read(name)

    def _fill(self, name: str, place: np.ndarray) -> None:
        with self.path.open("rb") as file:
            file.seek(self._data_start + self._entries[name]["data_offsets"][0])
            if file.readinto(place) != place.size:  # type: ignore[arg-type]
                raise CheckpointError(f"{self.path}: the file ends inside tensor {name!r}. {DAMAGED_CURE}")

    def _header(self) -> bytes:
        """The JSON header; its length is checked against the file's size and a bound before it is read."""
        file_bytes = self.path.stat().st_size
        with self.path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            if file_bytes < _LENGTH_BYTES + length or length > MAX_HEADER_BYTES:
                raise CheckpointError(
                    f"{self.path}: not a complete safetensors file: the header must fit in the file and take at most "
                    f"{MAX_HEADER_BYTES} bytes. Received: a header of {length} bytes, a file of {file_bytes} bytes. "
                    f"{DAMAGED_CURE}"
                )
            return file.read(length)


def write_safetensors(path: Path, tensors: TensorFile, *, metadata: Mapping[str, str] = METADATA) -> None:
    """Writes tensors into one `.safetensors` file, all as float32.

    Only one tensor is in memory at a time. The file is byte for byte what the library `safetensors` writes for the same
    tensors: sorted by name, one after another.

    Args:
        path: the file; an existing one is replaced.
        tensors: the tensors; each is read once.
        metadata: the header's `__metadata__`.

    Raises:
        ValueError: a tensor has another shape than in `tensors.infos`.
        OSError: the file cannot be written; half of it is left, so write into a directory of `new_directory`.

    Examples:
        >>> import tempfile, safetensors.numpy
        >>> from keras_bert_layers.checkpoints.files.safetensors_file import SafetensorsFile
        >>> folder = Path(tempfile.mkdtemp())
        >>> safetensors.numpy.save_file({"pooler.dense.bias": np.ones(3, "float16")}, folder / "half.safetensors")
        >>> write_safetensors(folder / "model.safetensors", SafetensorsFile(folder / "half.safetensors"))
        >>> SafetensorsFile(folder / "model.safetensors").infos
        {'pooler.dense.bias': TensorInfo(dtype='F32', shape=(3,))}

    References:
        https://github.com/huggingface/safetensors#format
    """
    with path.open("wb") as file:
        header = _header(tensors, metadata)
        file.write(len(header).to_bytes(_LENGTH_BYTES, "little"))
        file.write(header)
        for name in sorted(tensors.infos):
            file.write(_values(tensors, name))


def _values(tensors: TensorFile, name: str) -> memoryview:
    """The bytes of one tensor, without a copy if its memory is in this order already."""
    array = np.ascontiguousarray(tensors.read(name), _STORED)
    shape = tensors.infos[name].shape
    if array.size != math.prod(shape):
        raise ValueError(f"`write_safetensors`: tensor {name!r} must have shape {shape}. Received: {array.shape}.")
    return array.reshape(-1).data.cast("B")


def _header(tensors: TensorFile, metadata: Mapping[str, str]) -> bytes:
    """The JSON of names, shapes and positions, padded with spaces."""
    entries: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    start = 0
    for name in sorted(tensors.infos):
        shape = tensors.infos[name].shape
        end = start + math.prod(shape) * _STORED.itemsize
        entries[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
        start = end
    header = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    return header + b" " * (-len(header) % _ALIGNMENT)
