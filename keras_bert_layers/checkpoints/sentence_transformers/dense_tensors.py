"""`DenseTensors`: the dense layer of a sentence-transformers model."""

from __future__ import annotations

import numpy as np

from keras_bert_layers.checkpoints.files.tensor_file import TensorFile, TensorInfo


class DenseTensors:
    """The tensors of a dense layer of sentence-transformers, with a bias of zeros if it was made without a bias.

    Args:
        stored: the tensors of its file: `linear.weight`, and `linear.bias` if it has one.
    """

    def __init__(self, stored: TensorFile):
        self._stored = stored
        self.infos = dict(stored.infos)
        if "linear.weight" in self.infos:
            dtype, shape = self.infos["linear.weight"]
            self.infos.setdefault("linear.bias", TensorInfo(dtype, shape[:1]))

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor as float32, in its stored shape."""
        is_stored = name in self._stored.infos
        return self._stored.read(name) if is_stored else np.zeros(self.infos[name].shape, np.float32)
