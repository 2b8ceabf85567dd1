"""Reads and writes Keras's `.weights.h5` files, and reads transformers' `tf_model.h5`, one tensor at a time."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from keras_bert_layers._internal.files.disk_space import check_room
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged
from keras_bert_layers.checkpoints.files.tensor_file import (
    DAMAGED_CURE,
    TensorFile,
    TensorInfo,
    check_not_pointer,
    stored_dtype,
    to_float32,
)

# The deepest tensor of a BERT is below six groups; BERT-large with its optimizer's state has about 3,000 entries.
MAX_DEPTH = 16
MAX_ENTRIES = 100_000

_DTYPES = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "int32": "I32", "int8": "I8"}

# Keras's names of a layer's weights, and those of torch, which the table of weight names has.
_LAST = {"kernel": "weight", "gamma": "weight", "embeddings": "weight", "beta": "bias"}
# This kernel is (N, D, H) in the releases in which an attention kernel had an axis for heads; the others are (H, N, D).
_HEADS_FIRST = ".attention.output.dense.weight"


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
        with damaged(f"{path}: not a complete HDF5 file", Exception, DAMAGED_CURE), h5py.File(path, "r") as file:
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


class TfModelFile:
    """The tensors of a `tf_model.h5`, by the names and in the shapes of transformers' torch classes.

    The file is Keras 2's HDF5 file of weights: a group for each layer of the model, such as `bert` or `mlm___cls`, and
    in it the weights by their variables' names, such as
    `tf_bert_for_masked_lm/bert/encoder/layer_._0/output/dense/kernel:0`. A variable of two layers, such as the word
    embeddings in `mlm___cls`, is in the file twice. Neither TensorFlow nor transformers is needed. Opening and reading
    are as safe as those of `Hdf5File`.

    Args:
        path: the file.

    Raises:
        CheckpointError: see `Hdf5File`.

    Examples:
        >>> import h5py, tempfile
        >>> path = Path(tempfile.mkdtemp(), "tf_model.h5")
        >>> with h5py.File(path, "w") as file:
        ...     file["bert/tf_bert_model/bert/encoder/layer_._0/output/dense/kernel:0"] = np.ones((3, 2), "float32")
        >>> TfModelFile(path).infos
        {'bert.encoder.layer.0.output.dense.weight': TensorInfo(dtype='F32', shape=(2, 3))}

    References:
        `save_weights` in transformers 4, modeling_tf_utils.py; the names are explained in modeling_tf_pytorch_utils.py.
    """

    def __init__(self, path: Path):
        self.path = path
        self._file = Hdf5File(path)
        layers = {stored.partition("/")[0] for stored in self._file.infos}
        self._stored: dict[str, list[str]] = {}
        for stored in self._file.infos:
            self._stored.setdefault(_torch_name(stored, layers), []).append(stored)
        self.infos = {name: self._info(name) for name in self._stored}

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32; see `TensorFile.read`."""
        first, *copies = self._stored[name]
        array, shape = self._file.read(first), self.infos[name].shape
        if not all(np.array_equal(array, self._file.read(copy)) for copy in copies):
            raise CheckpointError(f"{self.path}: the tensors {', '.join(self._stored[name])} must be equal.")
        return array.reshape(shape[::-1]).T if _is_kernel(first) else array.reshape(shape)

    def _info(self, name: str) -> TensorInfo:
        dtype, shape = self._file.infos[self._stored[name][0]]
        if len(shape) > 1 and name.endswith(".bias"):  # (N, D)
            return TensorInfo(dtype, (math.prod(shape),))
        if not _is_kernel(self._stored[name][0]):
            return TensorInfo(dtype, shape)
        if len(shape) == 3:
            (*heads, last), (first, *others) = shape, shape
            shape = (math.prod(heads), last) if name.endswith(_HEADS_FIRST) else (first, math.prod(others))
        return TensorInfo(dtype, shape[::-1])


def _is_kernel(stored: str) -> bool:
    return stored.endswith("/kernel:0")


def _torch_name(stored: str, layers: set[str]) -> str:
    """The name in torch of a tensor at a path `LAYER/MODEL/LAYER/.../WEIGHT:0`; `layers` are all layers of the file.

    `_._` is a level of its own, and `A___B` is B: two layers of the TensorFlow class that are one in torch.
    """
    layer, *parts = stored.removesuffix(":0").split("/")
    has_model = layers.isdisjoint(parts[:1]) or not layers.isdisjoint(parts[1:2])  # a model may have no name
    *names, last = [part.rpartition("___")[2] for part in (parts[1:] if has_model else parts)] or [layer]
    return ".".join([*names, _LAST.get(last, last)]).replace("_._", ".")
