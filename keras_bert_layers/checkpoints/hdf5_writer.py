"""`write_hdf5`: tensors into one `.weights.h5` file as Keras writes it, one at a time."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from keras_bert_layers.checkpoints.tensor_file import TensorFile


def write_hdf5(path: Path, tensors: TensorFile) -> None:
    """Writes tensors into one `.weights.h5` file, all as float32; the same tensors give the same bytes.

    Only one tensor is in memory at a time.

    Args:
        path: the file; what is there is replaced.
        tensors: what to write, under the paths that Keras uses, as `layers/dense/vars/0`; each is read once.

    Raises:
        OSError: the file cannot be written; half of it is left, so write into a directory of `new_directory`.

    Examples:
        >>> import tempfile
        >>> from keras_bert_layers.checkpoints.hdf5_file import Hdf5File
        >>> folder = Path(tempfile.mkdtemp())
        >>> with h5py.File(folder / "half.weights.h5", "w") as file:
        ...     file["layers/dense/vars/1"] = np.ones(3, "float16")
        >>> write_hdf5(folder / "model.weights.h5", Hdf5File(folder / "half.weights.h5"))
        >>> Hdf5File(folder / "model.weights.h5").infos
        {'layers/dense/vars/1': TensorInfo(dtype='F32', shape=(3,))}
    """
    with h5py.File(path, "w") as file:
        for name in tensors.infos:
            file.create_dataset(name, data=np.ascontiguousarray(tensors.read(name), "<f4"))
