"""`Hdf5File` and `write_hdf5`: read and write a `.weights.h5` file of Keras, one tensor at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from keras_bert_layers._internal.room import check_room
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged
from keras_bert_layers.checkpoints.files.lfs_pointer import check_not_pointer
from keras_bert_layers.checkpoints.files.tensor_file import (
    DAMAGED_CURE,
    TensorFile,
    TensorInfo,
    stored_dtype,
    to_float32,
)

# The deepest tensor of a BERT is below six groups; BERT-large with its optimizer's state has about 3,000 entries.
MAX_DEPTH = 16
MAX_ENTRIES = 100_000

_DTYPES = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "int32": "I32", "int8": "I8"}


class Hdf5File:
    """The tensors of one `.weights.h5` file of Keras.

    A tensor's name is its path in the file, as `layers/dense/vars/0`. Opening reads the names, shapes and dtypes of
    all; values are read by `read` only. Everything that could lead out of the file or fill the memory is refused:
    links, virtual and external tensors, and tensors with fewer bytes than their shape needs, compressed ones included.
    Keras writes none of these.

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
        self._num_entries = 0
        check_not_pointer(path)
        # h5py passes on every error of the C library, as any class of exception.
        with damaged(f"{path}: not a whole HDF5 file", Exception, DAMAGED_CURE), h5py.File(path, "r") as file:
            self.infos = {name: self._info(name, dataset) for name, dataset in self._datasets(file)}

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32; see `TensorFile.read`."""
        dtype = self.infos[name].dtype
        stored_dtype(self.path, name, dtype)
        what = f"{self.path}: tensor {name!r} cannot be read"
        with damaged(what, Exception, DAMAGED_CURE), h5py.File(self.path, "r") as file:
            return to_float32(np.asarray(file[name][()]), dtype)

    def _datasets(self, group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Every tensor with its path; groups are walked by hand, as h5py's own walk does not report links."""
        for key in group:
            name = f"{prefix}{key}"
            self._num_entries += 1
            if name.count("/") > MAX_DEPTH or self._num_entries > MAX_ENTRIES:
                raise CheckpointError(f"{self.path}: {name!r} is deeper, or among more entries, than any BERT's.")
            if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                raise CheckpointError(f"{self.path}: {name!r} must not be a link. Do not trust this checkpoint.")
            entry = group[key]
            if isinstance(entry, h5py.Group):
                yield from self._datasets(entry, f"{name}/")
            elif isinstance(entry, h5py.Dataset):
                yield name, entry

    def _info(self, name: str, dataset: Any) -> TensorInfo:
        if dataset.is_virtual or dataset.external:
            raise CheckpointError(f"{self.path}: {name!r} must be stored in this file. Do not trust this checkpoint.")
        if dataset.id.get_storage_size() < dataset.nbytes:
            raise CheckpointError(
                f"{self.path}: {name!r} must hold the {dataset.nbytes} bytes of its shape {dataset.shape}. "
                f"Received: {dataset.id.get_storage_size()} bytes. {DAMAGED_CURE}"
            )
        # HDF5 has no bfloat16; Keras stores two bytes, with an attribute.
        is_bfloat16 = dataset.dtype.itemsize == 2 and dataset.attrs.get("dtype") == "bfloat16"
        return TensorInfo("BF16" if is_bfloat16 else _DTYPES.get(str(dataset.dtype), str(dataset.dtype)), dataset.shape)


def write_hdf5(path: Path, tensors: TensorFile) -> None:
    """Writes tensors into one `.weights.h5` file, all as float32; the same tensors give the same bytes.

    Only one tensor is in memory at a time.

    Args:
        path: the file; an existing one is replaced.
        tensors: the tensors, under the paths that Keras uses, as `layers/dense/vars/0`; each is read once.

    Raises:
        OSError: the file cannot be written; half of it is left, so write into a directory of `new_directory`.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with h5py.File(folder / "half.weights.h5", "w") as file:
        ...     file["layers/dense/vars/1"] = np.ones(3, "float16")
        >>> write_hdf5(folder / "model.weights.h5", Hdf5File(folder / "half.weights.h5"))
        >>> Hdf5File(folder / "model.weights.h5").infos
        {'layers/dense/vars/1': TensorInfo(dtype='F32', shape=(3,))}
    """
    check_room(path.parent, [4 * math.prod(info.shape) for info in tensors.infos.values()])
    with h5py.File(path, "w") as file:
        for name in tensors.infos:
            file.create_dataset(name, data=np.ascontiguousarray(tensors.read(name), "<f4"))
