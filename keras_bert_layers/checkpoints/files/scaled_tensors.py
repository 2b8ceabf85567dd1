"""`ScaledTensors`: 8-bit weights with scales, read as the floats that they stand for."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile, TensorInfo

_SCALE = "_scale"
# The suffix of the weight, so that a tensor that only has a similar name is left alone.
_WEIGHT = ".weight"


def _e4m3_values() -> np.ndarray:
    """The float of each byte: sign, 4 bits of exponent with bias 7, 3 of fraction; no infinity, one NaN a sign."""
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    values = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10))
    values[(codes & 127) == 127] = np.nan
    return np.where(codes < 128, values, -values).astype(np.float32)


_E4M3 = _e4m3_values()


class StoredTensors(TensorFile, Protocol):
    """A `TensorFile` that also gives the bytes of a tensor."""

    def read_bytes(self, name: str) -> np.ndarray:
        """The bytes of a tensor, as a flat uint8 array."""
        ...


class ScaledTensors:
    """A file whose 8-bit weights have scales, as a `TensorFile` of float32.

    A weight `NAME.weight` of dtype F8_E4M3 or I8 is `code * NAME.weight_scale`: one scale for all of it, for each row,
    or for each group of columns of a row. Other tensors are read as they are.

    Args:
        file: the tensors, as `compressed-tensors` writes them ("float-quantized", "int-quantized").
        where: the path, for errors.

    Raises:
        CheckpointError: a scale does not fit its weight.

    References:
        Micikevicius et al. 2022, https://arxiv.org/abs/2209.05433, table 1; `NaiveQuantizationCompressor` in
        compressed_tensors, compressors/naive_quantized.
    """

    def __init__(self, file: StoredTensors, where: object):
        self._file = file
        self._scaled = {name for name in file.infos if _is_scaled(name, file)}
        scales = {name + _SCALE for name in self._scaled}
        self.infos = {name: info for name, info in file.infos.items() if name not in scales}
        for name in self.infos:
            if name.rpartition(_WEIGHT + "_")[0] + _WEIGHT in self._scaled:  # a zero point, an order of columns
                raise CheckpointError(f"{where}: a weight of 8 bits must have a scale only. Found: {name!r} too.")
        for name in self._scaled:
            shape, scale = file.infos[name].shape, file.infos[name + _SCALE].shape
            if not _fits(scale, shape):
                raise CheckpointError(f"{where}: {name + _SCALE!r} of shape {scale} does not fit its weight, {shape}.")
            self.infos[name] = TensorInfo("F32", shape)

    @property
    def num_scaled(self) -> int:
        """The number of weights with a scale."""
        return len(self._scaled)

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype, or one with a scale, as float32."""
        if name not in self._scaled:
            return self._file.read(name)
        dtype, shape = self._file.infos[name]
        codes = self._file.read_bytes(name)
        values = _E4M3[codes] if dtype == "F8_E4M3" else codes.view(np.int8).astype(np.float32)
        scale = self._file.read(name + _SCALE)
        if scale.size > 1:
            scale = np.repeat(scale.reshape(shape[0], -1), shape[1] * shape[0] // scale.size, axis=1)
        return values.reshape(shape) * scale


def _is_scaled(name: str, file: TensorFile) -> bool:
    is_weight = name.endswith(_WEIGHT) and file.infos[name].dtype in ("F8_E4M3", "I8")
    return is_weight and name + _SCALE in file.infos


def _fits(scale: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether scales are one, one a row, or one a group of columns of a row."""
    if scale in ((), (1,), (1, 1)):
        return True
    is_by_row = len(shape) == 2 and scale[:1] == shape[:1] and 0 not in shape
    return is_by_row and (len(scale) == 1 or (len(scale) == 2 and scale[1] > 0 and shape[1] % scale[1] == 0))
