"""`write_safetensors`: tensors into one `.safetensors` file, one at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers.checkpoints.tensor_file import TensorFile

_LENGTH_BYTES = 8
# The numbers begin at a multiple of this, so that a program may use them where they lie in a mapped file.
_ALIGNMENT = 8
_STORED = np.dtype("<f4")

# transformers refuses a file that does not say who may read it; this is its word for every framework.
METADATA = {"format": "pt"}


def write_safetensors(path: Path, tensors: TensorFile, *, metadata: Mapping[str, str] = METADATA) -> None:
    """Writes tensors into one `.safetensors` file, all as float32.

    Only one tensor is in memory at a time. The file is byte for byte what the library `safetensors` writes of the same
    tensors: by name, one behind the other.

    Args:
        path: the file; what is there is replaced.
        tensors: what to write; each is read once.
        metadata: what the header says beside the tensors.

    Raises:
        ValueError: a tensor has another shape than its info says.
        OSError: the file cannot be written; half of it is left, so write into a directory of `new_directory`.

    Examples:
        >>> import tempfile, safetensors.numpy
        >>> from keras_bert_layers.checkpoints.safetensors_file import SafetensorsFile
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
            file.write(_numbers(tensors, name))


def _numbers(tensors: TensorFile, name: str) -> memoryview:
    """One tensor's bytes as they lie in the file, without a copy where its own memory is in this order."""
    array = np.ascontiguousarray(tensors.read(name), _STORED)
    shape = tensors.infos[name].shape
    if array.size != _size(shape):
        raise ValueError(f"`write_safetensors`: tensor {name!r} must have shape {shape}. Received: {array.shape}.")
    return array.reshape(-1).data.cast("B")


def _header(tensors: TensorFile, metadata: Mapping[str, str]) -> bytes:
    """The JSON of names, shapes and places, filled up with blanks."""
    entries: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    start = 0
    for name in sorted(tensors.infos):
        shape = tensors.infos[name].shape
        end = start + _size(shape) * _STORED.itemsize
        entries[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
        start = end
    header = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    return header + b" " * (-len(header) % _ALIGNMENT)


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))
