"""`JoinedTensors`: the tensors of several files as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import is_file_name, read_json_object
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile


class JoinedTensors:
    """The tensors of several files as one `TensorFile`.

    Args:
        files: a prefix for the names of each file, and the file.
    """

    def __init__(self, files: Iterable[tuple[str, TensorFile]]):
        self._homes = {prefix + name: (file, name) for prefix, file in files for name in file.infos}
        self.infos = {name: file.infos[stored] for name, (file, stored) in self._homes.items()}

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32, in its stored shape."""
        file, stored = self._homes[name]
        return file.read(stored)

    def read_bytes(self, name: str) -> np.ndarray:
        """Reads the bytes of one tensor, if the file's reader can."""
        file, stored = self._homes[name]
        return file.read_bytes(stored)  # type: ignore[attr-defined, no-any-return]


def sharded_tensors(index_path: Path, open_shard: Callable[[Path], TensorFile]) -> JoinedTensors:
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
    return JoinedTensors(("", file) for file in shards.values())


def _check_shard_name(index_path: Path, name: str) -> None:
    """Accepts bare names only: a path could point anywhere on the machine."""
    if not name or not is_file_name(name):
        raise CheckpointError(
            f"{index_path}: a shard must be a file of the same directory. Received: {name!r}. "
            "Do not trust this checkpoint."
        )
    if not (index_path.parent / name).is_file():
        raise CheckpointError(f"{index_path}: the shard {name!r} is missing. Copy all files of the checkpoint.")
