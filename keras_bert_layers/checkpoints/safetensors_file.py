"""`SafetensorsFile`: the tensors of one `.safetensors` file, read one at a time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.tensor_file import FLOAT_DTYPES, TensorInfo

# A tensor takes some 120 bytes of header; BERT-large with all its heads has about 400.
MAX_HEADER_BYTES = 8 * 1024 * 1024

_LENGTH_BYTES = 8
_STORED_DTYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2"}

_CURE = "Download or copy the file again and compare its size and checksum."


class SafetensorsFile:
    """The tensors of one `.safetensors` file.

    A file is 8 bytes with the header's length, a JSON header that gives each tensor's dtype, shape and place, and the
    numbers. Opening checks the length before anything of that size is read, then lets the library `safetensors` check
    the header: tensors lie one behind the other, none overlaps, and they fill the file. Numbers are read by `read`
    only, without mapping the file into memory.

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
        header_bytes = self._header_bytes()
        self._check_layout()
        self._data_start = _LENGTH_BYTES + header_bytes
        self._entries = self._header(header_bytes)
        self.infos = {name: TensorInfo(entry["dtype"], tuple(entry["shape"])) for name, entry in self._entries.items()}

    def read(self, name: str) -> np.ndarray:
        """One tensor of a float format as float32.

        Args:
            name: a key of `infos` with a dtype in `FLOAT_DTYPES`.

        Returns:
            A float32 array of the stored shape. float16 and bfloat16 become float32 without loss.

        Raises:
            CheckpointError: the file became shorter since it was opened; no array can have the stored shape.
        """
        dtype, shape = self.infos[name]
        if dtype not in FLOAT_DTYPES:
            raise CheckpointError(f"{self.path}: tensor {name!r} must be one of {FLOAT_DTYPES}. Received: {dtype}.")
        start, end = self._entries[name]["data_offsets"]
        stored = np.dtype(_STORED_DTYPES[dtype])
        count = (end - start) // stored.itemsize
        array = np.fromfile(self.path, dtype=stored, count=count, offset=self._data_start + start)
        if array.size != count:
            raise CheckpointError(f"{self.path}: the file ends inside tensor {name!r}. {_CURE}")
        if dtype == "BF16":  # the upper half of a float32
            array = (array.astype("<u4") << 16).view("<f4")
        try:
            with np.errstate(over="ignore"):  # a float64 too large becomes infinity, which loading refuses
                return array.astype(np.float32, copy=False).reshape(shape)
        except ValueError as error:  # NumPy has at most 64 axes, and 2**63 elements even where one axis is 0
            raise CheckpointError(f"{self.path}: tensor {name!r} has a shape that no array has: {error}.") from error

    def _header_bytes(self) -> int:
        """The header's length, checked against the file's size and against a bound."""
        file_bytes = self.path.stat().st_size
        with self.path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if file_bytes < _LENGTH_BYTES + length or length > MAX_HEADER_BYTES:
            raise CheckpointError(
                f"{self.path}: not a whole safetensors file: the header must fit in the file and take at most "
                f"{MAX_HEADER_BYTES} bytes. Received: a header of {length} bytes, a file of {file_bytes} bytes. {_CURE}"
            )
        return length

    def _check_layout(self) -> None:
        try:
            with safe_open(self.path, framework="np"):
                pass
        except SafetensorError as error:
            reason = str(error).removeprefix("Error while deserializing header: ")
            raise CheckpointError(f"{self.path}: not a whole safetensors file: {reason}. {_CURE}") from error

    def _header(self, header_bytes: int) -> dict[str, dict]:
        with self.path.open("rb") as file:
            file.seek(_LENGTH_BYTES)
            pairs = json.loads(file.read(header_bytes), object_pairs_hook=list)
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        if twice:
            raise CheckpointError(f"{self.path}: the header names the tensors {twice} twice. {_CURE}")
        return {name: dict(entry) for name, entry in pairs if name != "__metadata__"}
