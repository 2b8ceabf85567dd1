"""Views of stored tensors: of several files as one, under other names, and of 8-bit weights with their scales."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import is_file_name, read_json_object
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile, TensorInfo, read_into

_SCALE = "_scale"
# The suffix of the weight, so that a tensor that only has a similar name is left alone.
_WEIGHT = ".weight"


class TensorView:
    """Tensors of one or several files, under other names, as one `TensorFile`.

    Args:
        homes: name -> the tensor's file and its name there.

    Examples:
        >>> class Ones:
        ...     infos = {"model.bias": TensorInfo("F32", (3,))}
        ...     def read(self, name):
        ...         return np.ones(3, "float32")
        >>> TensorView({"bias": (Ones(), "model.bias")}).read("bias")
        array([1., 1., 1.], dtype=float32)
    """

    def __init__(self, homes: Mapping[str, tuple[TensorFile, str]]):
        self._homes = homes
        self.infos = {name: file.infos[stored] for name, (file, stored) in homes.items()}

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32, in its stored shape."""
        file, stored = self._homes[name]
        return file.read(stored)

    def read_into(self, name: str, place: np.ndarray) -> None:
        """Reads one tensor into an array; see the function `read_into`."""
        file, stored = self._homes[name]
        read_into(file, stored, place)

    def read_bytes(self, name: str) -> np.ndarray:
        """Reads the bytes of one tensor, if the file's reader can."""
        file, stored = self._homes[name]
        return file.read_bytes(stored)  # type: ignore[attr-defined, no-any-return]


class PiecesOfTensors:
    """Pieces of the tensors of a file, each of equal size along the first axis, as one `TensorFile`.

    Args:
        file: the file.
        pieces: name -> the tensor's name in the file, which piece of it, and the number of its pieces.
    """

    def __init__(self, file: TensorFile, pieces: Mapping[str, tuple[str, int, int]]):
        self._file, self.pieces = file, pieces
        self.infos = {}
        for name, (stored, _, count) in pieces.items():
            dtype, shape = file.infos[stored]
            self.infos[name] = TensorInfo(dtype, (shape[0] // count, *shape[1:]) if shape else shape)

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32."""
        stored, index, count = self.pieces[name]
        array = self._file.read(stored)
        return array if count == 1 else np.split(array, count)[index]

    def read_into(self, name: str, place: np.ndarray) -> None:
        """Reads one tensor into an array; see the function `read_into`."""
        stored, _, count = self.pieces[name]
        if count == 1:
            read_into(self._file, stored, place)
        else:
            place[...] = self.read(name)


class JoinedTensors:
    """Tensors that are joined along the first axis, as one `TensorFile`.

    Args:
        file: the tensors.
        pieces: name -> the names of its pieces, in their order.
    """

    def __init__(self, file: TensorFile, pieces: Mapping[str, Sequence[str]]):
        self._file, self._pieces = file, pieces
        self.infos = {}
        for name, own in pieces.items():
            shapes = [file.infos[piece].shape for piece in own]
            rows = (sum(shape[0] for shape in shapes), *shapes[0][1:]) if len(own) > 1 else shapes[0]
            self.infos[name] = TensorInfo("F32", rows)

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor as float32."""
        arrays = [self._file.read(piece) for piece in self._pieces[name]]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def joined_tensors(files: Iterable[tuple[str, TensorFile]]) -> TensorView:
    """The tensors of several files as one `TensorFile`, each file with a prefix for its names."""
    return TensorView({prefix + name: (file, name) for prefix, file in files for name in file.infos})


def sharded_tensors(index_path: Path, open_shard: Callable[[Path], TensorFile]) -> TensorView:
    """Opens the shards of an index such as `model.safetensors.index.json`.

    The index's `weight_map` gives the file of each tensor. Index and files must agree: every tensor is in the file that
    the index names, and no file holds a tensor that is not in the index.

    Args:
        index_path: the index; its files are in the same directory.
        open_shard: opens one file, for instance `SafetensorsFile`.

    Raises:
        CheckpointError: the index is damaged, names a file outside its directory or one that is missing, or disagrees
            with a file.

    References:
        The files that `save_pretrained(max_shard_size=...)` of HuggingFace transformers writes.
    """
    files = read_json_object(index_path).get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(shard, str) for shard in files.values()):
        raise CheckpointError(f"{index_path}: `weight_map` must give a file name for each tensor.")
    names = sorted(set(files.values()))
    for name in names:
        _check_shard_name(index_path, name)
    shards = {name: open_shard(index_path.parent / name) for name in names}
    for tensor, shard in files.items():
        if tensor not in shards[shard].infos:
            raise CheckpointError(f"{index_path}: the tensor {tensor!r} must be in {shard!r}, which lacks it.")
    for shard, file in shards.items():
        for tensor in file.infos:
            if files.get(tensor) != shard:
                raise CheckpointError(f"{index_path}: {shard!r} holds {tensor!r}, which the index does not list.")
    return joined_tensors(("", file) for file in shards.values())


def _check_shard_name(index_path: Path, name: str) -> None:
    """Accepts bare names only: a path could point anywhere on the machine."""
    if not name or not is_file_name(name):
        raise CheckpointError(
            f"{index_path}: a shard must be a file of the same directory. Received: {name!r}. "
            "Do not trust this checkpoint."
        )
    if not (index_path.parent / name).is_file():
        raise CheckpointError(f"{index_path}: the shard {name!r} is missing. Copy all files of the checkpoint.")


def _e4m3_values() -> np.ndarray:
    """The float of each byte: sign, 4 bits of exponent with bias 7, 3 of fraction; no infinity, one NaN per sign."""
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    values = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10))
    values[(codes & 127) == 127] = np.nan
    return np.where(codes < 128, values, -values).astype(np.float32)


_E4M3 = _e4m3_values()


class ScaledTensors:
    """A file whose 8-bit weights have scales, as a `TensorFile` of float32.

    A weight `NAME.weight` of dtype F8_E4M3 or I8 is `code * NAME.weight_scale`: one scale for all of it, per row,
    or per group of columns of a row. Other tensors are read as they are.

    Args:
        file: a `TensorFile` with `read_bytes`, of tensors as `compressed-tensors` writes them ("float-quantized",
            "int-quantized").
        where: the path, for errors.

    Raises:
        CheckpointError: a scale does not fit its weight.

    References:
        Micikevicius et al. 2022, https://arxiv.org/abs/2209.05433, table 1; `NaiveQuantizationCompressor` in
        compressed_tensors, compressors/naive_quantized.
    """

    def __init__(self, file: Any, where: object):
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
    """Whether scales are one, one per row, or one per group of columns of a row."""
    if scale in ((), (1,), (1, 1)):
        return True
    is_by_row = len(shape) == 2 and scale[:1] == shape[:1] and 0 not in shape
    return is_by_row and (len(scale) == 1 or (len(scale) == 2 and scale[1] > 0 and shape[1] % scale[1] == 0))
