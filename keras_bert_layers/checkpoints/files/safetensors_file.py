"""`SafetensorsFile`: the tensors of one `.safetensors` file, read one at a time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged
from keras_bert_layers.checkpoints.files.lfs_pointer import check_not_pointer
from keras_bert_layers.checkpoints.files.tensor_file import DAMAGED_CURE, TensorInfo, stored_dtype, to_float32

# A tensor takes some 120 bytes of header; BERT-large with all its heads has about 400.
MAX_HEADER_BYTES = 8 * 1024 * 1024

_LENGTH_BYTES = 8


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
        what = f"{path}: not a whole safetensors file"
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
        array = np.fromfile(self.path, dtype=np.uint8, count=end - start, offset=self._data_start + start)
        if array.size != end - start:
            raise CheckpointError(f"{self.path}: the file ends inside tensor {name!r}. {DAMAGED_CURE}")
        return array

    def _header(self) -> bytes:
        """The JSON header; its length is checked against the file's size and a bound before it is read."""
        file_bytes = self.path.stat().st_size
        with self.path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            if file_bytes < _LENGTH_BYTES + length or length > MAX_HEADER_BYTES:
                raise CheckpointError(
                    f"{self.path}: not a whole safetensors file: the header must fit in the file and take at most "
                    f"{MAX_HEADER_BYTES} bytes. Received: a header of {length} bytes, a file of {file_bytes} bytes. "
                    f"{DAMAGED_CURE}"
                )
            return file.read(length)
