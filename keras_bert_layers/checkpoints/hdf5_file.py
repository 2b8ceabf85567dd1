"""`Hdf5File`: the tensors of one `.weights.h5` file of Keras, read one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.tensor_file import FLOAT_DTYPES, TensorInfo

# The deepest tensor of a BERT lies below six groups; BERT-large with its optimizer's state has about 3,000 entries.
MAX_DEPTH = 16
MAX_ENTRIES = 100_000

_DTYPES = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "int32": "I32", "int8": "I8"}
_CURE = "Download or copy the file again and compare its size and checksum."


class Hdf5File:
    """The tensors of one `.weights.h5` file of Keras.

    A tensor's name is its path in the file, as `layers/dense/vars/0`. Opening looks at names, shapes and number formats
    of all; numbers are read by `read` only. What could lead out of the file or blow up is refused: links, virtual and
    external tensors, and tensors that hold fewer bytes than their shape says, compressed ones included, which Keras
    does not write.

    Args:
        path: the file.

    Raises:
        CheckpointError: the file is damaged or truncated, or holds what Keras does not write.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "model.weights.h5")
        >>> with h5py.File(path, "w") as file:
        ...     file["layers/dense/vars/1"] = np.ones(3, "float16")
        >>> file = Hdf5File(path)
        >>> file.infos
        {'layers/dense/vars/1': TensorInfo(dtype='F16', shape=(3,))}
        >>> file.read("layers/dense/vars/1")
        array([1., 1., 1.], dtype=float32)

    References:
        `H5IOStore` in keras, src/saving/saving_lib.py.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            with h5py.File(path, "r") as file:
                self.infos = {name: self._info(name, dataset) for name, dataset in self._datasets(file)}
        except CheckpointError:
            raise
        except Exception as error:  # h5py passes on whatever the C library says, as any class of exception
            raise CheckpointError(f"{path}: not a whole HDF5 file: {error}. {_CURE}") from error

    def read(self, name: str) -> np.ndarray:
        """One tensor of a float format as float32.

        Args:
            name: a key of `infos` with a dtype in `FLOAT_DTYPES`.

        Returns:
            A float32 array of the stored shape. float16 and bfloat16 become float32 without loss.

        Raises:
            CheckpointError: the tensor is no float, or its place in the file is damaged.
        """
        dtype = self.infos[name].dtype
        if dtype not in FLOAT_DTYPES:
            raise CheckpointError(f"{self.path}: tensor {name!r} must be one of {FLOAT_DTYPES}. Received: {dtype}.")
        try:
            with h5py.File(self.path, "r") as file:
                array = np.asarray(file[name][()])
        except Exception as error:
            raise CheckpointError(f"{self.path}: tensor {name!r} cannot be read: {error}. {_CURE}") from error
        if dtype == "BF16":  # the upper half of a float32
            array = (array.view("<u2").astype("<u4") << 16).view("<f4")
        return array.astype(np.float32, copy=False)

    def _datasets(self, file: Any) -> Iterator[tuple[str, Any]]:
        """Every tensor with its path; groups are walked by hand, as h5py's own walk says nothing of links."""
        num_entries = 0
        groups = [(file, "", 0)]
        while groups:
            group, prefix, depth = groups.pop()
            for key in group:
                name = f"{prefix}{key}"
                num_entries += 1
                if depth > MAX_DEPTH or num_entries > MAX_ENTRIES:
                    raise CheckpointError(f"{self.path}: {name!r} lies deeper, or among more entries, than any BERT's.")
                if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                    raise CheckpointError(f"{self.path}: {name!r} must not be a link. Do not trust this checkpoint.")
                entry = group[key]
                if isinstance(entry, h5py.Group):
                    groups.append((entry, f"{name}/", depth + 1))
                elif isinstance(entry, h5py.Dataset):
                    yield name, entry

    def _info(self, name: str, dataset: Any) -> TensorInfo:
        if dataset.is_virtual or dataset.external:
            raise CheckpointError(f"{self.path}: {name!r} must lie in this file. Do not trust this checkpoint.")
        if dataset.id.get_storage_size() < dataset.nbytes:
            raise CheckpointError(
                f"{self.path}: {name!r} must hold the {dataset.nbytes} bytes of its shape {dataset.shape}. "
                f"Received: {dataset.id.get_storage_size()} bytes. {_CURE}"
            )
        # HDF5 has no bfloat16; Keras stores two bytes and says so beside them.
        is_bfloat16 = dataset.dtype.itemsize == 2 and dataset.attrs.get("dtype") == "bfloat16"
        return TensorInfo("BF16" if is_bfloat16 else _DTYPES.get(str(dataset.dtype), str(dataset.dtype)), dataset.shape)
