"""`TfModelFile`: the tensors of a `tf_model.h5`, which the TensorFlow classes of transformers 4 wrote."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.hdf5_file import Hdf5File
from keras_bert_layers.checkpoints.files.tensor_file import TensorInfo

# Keras's names of a layer's weights, and those of torch, which the table of weight names has.
_LAST = {"kernel": "weight", "gamma": "weight", "embeddings": "weight", "beta": "bias"}
# This kernel is (N, D, H) in the releases in which an attention kernel had an axis for heads; the others are (H, N, D).
_HEADS_FIRST = ".attention.output.dense.weight"


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
