"""`DenseTensors`: an encoder and the dense layer of sentence-transformers behind it, as one file."""

from __future__ import annotations

import numpy as np

from keras_bert_layers.checkpoints.tensor_file import TensorFile, TensorInfo

_PREFIX = "dense."
_KERNEL, _BIAS = "dense.linear.weight", "dense.linear.bias"


class DenseTensors:
    """The tensors of an encoder, and those of the dense layer behind it with `dense.` before their names.

    A dense layer that was made without a bias has one of zeros here, which computes the same.

    Args:
        encoder: the encoder's tensors.
        dense: the dense layer's: `linear.weight`, and `linear.bias` if it has one.
    """

    def __init__(self, encoder: TensorFile, dense: TensorFile):
        self._encoder = encoder
        self._dense = dense
        self.infos = {**encoder.infos, **{_PREFIX + name: info for name, info in dense.infos.items()}}
        if _KERNEL in self.infos and _BIAS not in self.infos:
            dtype, shape = self.infos[_KERNEL]
            self.infos[_BIAS] = TensorInfo(dtype, shape[:1])

    def read(self, name: str) -> np.ndarray:
        """One tensor as float32, in its stored shape."""
        if name in self._encoder.infos:
            return self._encoder.read(name)
        stored = name.removeprefix(_PREFIX)
        if stored not in self._dense.infos:
            return np.zeros(self.infos[name].shape, np.float32)
        return self._dense.read(stored)
