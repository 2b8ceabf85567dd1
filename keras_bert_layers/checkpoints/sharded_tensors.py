"""`ShardedTensors`: tensors spread over several files by an index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.json_file import read_json_object
from keras_bert_layers.checkpoints.tensor_file import TensorFile


class ShardedTensors:
    """Tensors spread over several files by an index such as `model.safetensors.index.json`.

    The index's `weight_map` says for each tensor which file of the same directory holds it. Index and files must
    agree: every tensor lies where the index says, and no file holds a tensor that the index does not know.

    Args:
        index_path: the index.
        open_shard: what opens one file, for instance `SafetensorsFile`.

    Raises:
        CheckpointError: the index is damaged, names a file outside its directory or one that is missing, or disagrees
            with a file.

    References:
        The files that `save_pretrained(max_shard_size=...)` of HuggingFace transformers writes.
    """

    def __init__(self, index_path: Path, open_shard: Callable[[Path], TensorFile]):
        self.path = index_path
        self._places = self._weight_map()
        names = sorted(set(self._places.values()))
        for name in names:
            self._check_shard_name(name)
        self._shards = {name: open_shard(index_path.parent / name) for name in names}
        self._check_agreement()
        self.infos = {tensor: self._shards[shard].infos[tensor] for tensor, shard in self._places.items()}

    def read(self, name: str) -> np.ndarray:
        """One tensor of a float format as float32, in its stored shape."""
        return self._shards[self._places[name]].read(name)

    def _weight_map(self) -> dict[str, str]:
        places = read_json_object(self.path).get("weight_map")
        if not isinstance(places, dict) or not all(isinstance(shard, str) for shard in places.values()):
            raise CheckpointError(f"{self.path}: `weight_map` must give a file name for each tensor.")
        return places

    def _check_shard_name(self, name: str) -> None:
        """A bare name only: a path could point anywhere on the machine."""
        if name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise CheckpointError(
                f"{self.path}: a shard must be a file of the same directory. Received: {name!r}. "
                "Do not trust this checkpoint."
            )
        if not (self.path.parent / name).is_file():
            raise CheckpointError(f"{self.path}: the shard {name!r} is missing. Copy all files of the checkpoint.")

    def _check_agreement(self) -> None:
        for tensor, shard in self._places.items():
            if tensor not in self._shards[shard].infos:
                raise CheckpointError(f"{self.path}: the tensor {tensor!r} must be in {shard!r}, which lacks it.")
        for shard, file in self._shards.items():
            for tensor in file.infos:
                if self._places.get(tensor) != shard:
                    raise CheckpointError(f"{self.path}: {shard!r} holds {tensor!r}, which the index does not say.")
