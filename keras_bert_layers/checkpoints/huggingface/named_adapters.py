"""Adapters of which a name chooses one: stacked in a file's own tensors, or in folders of PEFT beside the weights."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers.checkpoints.checkpoint import plain_name
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.checkpoints.files.json_file import shown
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile, TensorInfo
from keras_bert_layers.checkpoints.files.tensor_views import TensorView
from keras_bert_layers.checkpoints.huggingface.adapter import (
    ADAPTER_CONFIG,
    AdaptedTensors,
    adapter_values,
    merged_adapter,
)
from keras_bert_layers.checkpoints.huggingface.families.family import Family
from keras_bert_layers.checkpoints.huggingface.weight_files import open_adapter

# The key of `config.json` that names stacked adapters, in their order.
_STACKED = "lora_adaptations"
_WEIGHT, _ORIGINAL = ".weight", ".parametrizations.weight.original"
_STACK = ".parametrizations.weight.0.lora_"
_EMBEDDING = "embeddings."
_Pieces = Mapping[str, tuple[str, int, int]]


class NamedAdapters:
    """The adapters of a directory, of which a name chooses one.

    Args:
        folder: the directory.
        config: the content of its `config.json`.
        family: the model type, which knows names that folders cannot have.
        owner: the public function that was called, for errors.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], family: Family, *, owner: str):
        self._folder, self._config, self._family, self._owner = folder, config, family, owner
        self._stacked = (config.get(_STACKED) or []) if family.adapters else []
        if not isinstance(self._stacked, list) or not all(isinstance(name, str) for name in self._stacked):
            rule = f"`{_STACKED}` must be a list of names"
            raise CheckpointError(f"{folder / 'config.json'}: {rule}. Received: {shown(self._stacked)}.")
        known = {plain_name(name): name for name in family.adapters}
        folders = sorted(path.parent for path in folder.glob(f"*/{ADAPTER_CONFIG}"))
        self._folders = {known.get(plain_name(path.name), path.name): path for path in folders}
        #: Their names, in the order of the files.
        self.names = tuple(self._stacked or self._folders)

    def base(self, stored: TensorFile) -> TensorFile:
        """The tensors of a file by the names of transformers' modules, without those of stacked adapters."""
        self._stored = stored
        if self._stacked:
            homes = {name.replace(_ORIGINAL, _WEIGHT): (stored, name) for name in stored.infos if _STACK not in name}
            stored = TensorView(homes)
        tensors = self._family.names.of_modules(stored)
        self._pieces = getattr(tensors, "pieces", {})
        return tensors

    def merged(self, name: str, base: TensorFile, table_name: Callable[[str], str]) -> AdaptedTensors:
        """The tensors of `base`, with one of the adapters added; `table_name` as for `merged_adapter`."""
        if self._stacked:
            path = self._folder / "config.json"
            adapter: TensorFile = StackedAdapter(path, self._stored, self._pieces, self._stacked, name)
            sizes = {"r": self._config.get("lora_rank"), "lora_alpha": self._config.get("lora_alpha")}
            return merged_adapter(path, sizes, base, adapter, table_name)
        path = self._folders[name] / ADAPTER_CONFIG
        with naming(path):
            values, adapter = adapter_values(path), open_adapter(path.parent, owner=self._owner)
            return merged_adapter(path, values, base, adapter, table_name)


class StackedAdapter:
    """One of the adapters that are stacked in tensors, under PEFT's names and in its shapes, as a `TensorFile`.

    Legend of shapes: K adapters, R rank.

    Args:
        path: the file that names the adapters, for errors.
        tensors: a file's tensors: of a dense layer `lora_A` `(K, R, inputs)` and `lora_B` `(K, outputs, R)`; of an
            embedding `lora_A` `(K, rows, R)` and `lora_B` `(K, R, width)`.
        pieces: name of a module's weight -> its name in the file, which piece of it, and the number of its pieces.
        names: the adapters' names in their order.
        name: the name of this one.

    Raises:
        CheckpointError: a stack is not of as many adapters.

    References:
        jinaai/xlm-roberta-flash-implementation, modeling_lora.py.
    """

    def __init__(self, path: Path, tensors: TensorFile, pieces: _Pieces, names: Sequence[str], name: str):
        self._path, self._tensors, self._index = path, tensors, names.index(name)
        self._places: dict[str, tuple[str, bool, int, int]] = {}
        self.infos: dict[str, TensorInfo] = {}
        for module, (stored, piece, count) in pieces.items():
            stack = stored.removesuffix(_WEIGHT) + _STACK
            for letter in "AB" if f"{stack}A" in tensors.infos or f"{stack}B" in tensors.infos else "":
                is_embedding = _EMBEDDING in module
                last = f"lora_embedding_{letter}" if is_embedding else f"lora_{letter}.weight"
                own = (piece, count) if letter == "B" else (0, 1)
                self._add(f"{module.removesuffix(_WEIGHT)}.{last}", stack + letter, is_embedding, own, len(names))

    def _add(self, name: str, stored: str, is_embedding: bool, own: tuple[int, int], num_adapters: int) -> None:
        dtype, shape = self._tensors.infos.get(stored, ("", ()))
        if len(shape) != 3 or shape[0] != num_adapters or shape[1] % own[1]:
            rule = f"{stored!r} must have {num_adapters} adapters"
            raise CheckpointError(f"{self._path}: {rule}. Received: shape={shape}.")
        rows, columns = shape[1] // own[1], shape[2]
        self.infos[name] = TensorInfo(dtype, (columns, rows) if is_embedding else (rows, columns))
        self._places[name] = (stored, is_embedding, *own)

    def read(self, name: str) -> np.ndarray:
        """Reads one matrix as float32."""
        stored, is_embedding, piece, count = self._places[name]
        array = np.split(self._tensors.read(stored)[self._index], count)[piece]
        return array.T if is_embedding else array
