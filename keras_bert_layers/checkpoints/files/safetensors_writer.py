"""`write_safetensors`: writes tensors into one `.safetensors` file, one at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers.checkpoints.files.tensor_file import TensorFile

_LENGTH_BYTES = 8
# The values begin at a multiple of this, so that a program can use them directly in a mapped file.
_ALIGNMENT = 8
_STORED = np.dtype("<f4")

# transformers refuses a file without this entry; "pt" is what it writes for every framework.
METADATA = {"format": "pt"}


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
