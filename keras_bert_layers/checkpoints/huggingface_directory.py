"""`HuggingFaceDirectory`: the files of a checkpoint in HuggingFace's layout, sentence-transformers' included."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.json_file import read_json_object
from keras_bert_layers.checkpoints.safetensors_file import SafetensorsFile
from keras_bert_layers.checkpoints.sentence_transformers import MODULES_FILE, transformer_folder
from keras_bert_layers.checkpoints.sharded_tensors import ShardedTensors
from keras_bert_layers.checkpoints.tensor_file import TensorFile
from keras_bert_layers.checkpoints.torch_file import CONVERT, TorchFile
from keras_bert_layers.config import BertConfig

_INDEX = ".index.json"

# The first that is there is read. What can hold a program stands last.
_WEIGHTS: dict[str, Callable[[Path], TensorFile]] = {
    "model.safetensors": SafetensorsFile,
    f"model.safetensors{_INDEX}": SafetensorsFile,
    "pytorch_model.bin": TorchFile,
    f"pytorch_model.bin{_INDEX}": TorchFile,
}


class HuggingFaceDirectory:
    """The files of a checkpoint in HuggingFace's layout.

    `config.json` and the weights lie in the directory itself, or, in old sentence-transformers checkpoints, in the
    folder that `modules.json` names. Nothing is read before it is asked for, and nothing outside the directory.

    Args:
        source: the directory.
        owner: the public function that was called, for errors.

    Raises:
        TypeError: `source` is not a path.
        CheckpointError: there is no such directory, or it may not be read.
    """

    def __init__(self, source: str | os.PathLike[str], *, owner: str):
        self.owner = owner
        self.root = _existing_directory(source, owner)
        self.folder = self.root / transformer_folder(self.root)

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def is_sentence_transformers(self) -> bool:
        """Whether sentence-transformers wrote the directory: it has a `modules.json`."""
        return (self.root / MODULES_FILE).is_file()

    @cached_property
    def config_values(self) -> dict[str, Any]:
        """`config.json` as it stands."""
        path = self.folder / "config.json"
        if not path.is_file():
            raise CheckpointError(
                f"`{self.owner}`: {self} must hold a config.json. Found: {self._listing()}. "
                "Give the directory that `save_pretrained` wrote."
            )
        return read_json_object(path)

    @cached_property
    def config(self) -> BertConfig:
        """`config.json` as a `BertConfig`; every key is honoured or refused."""
        values = self.config_values
        try:
            return BertConfig.from_huggingface(values)
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{self.folder / 'config.json'}: {error}") from error

    @property
    def has_config(self) -> bool:
        """Whether there is a `config.json`."""
        return (self.folder / "config.json").is_file()

    def optional_json(self, name: str) -> dict[str, Any]:
        """A JSON file beside `config.json`; an empty dictionary where it is absent."""
        path = self.folder / name
        return read_json_object(path) if path.is_file() else {}

    def open_weights(self) -> TensorFile:
        """The checkpoint's tensors: safetensors if there, else a PyTorch file.

        Raises:
            CheckpointError: there is no file of weights, or it is damaged; see `SafetensorsFile` and `TorchFile`.
        """
        for name, reader in _WEIGHTS.items():
            path = self.folder / name
            if path.is_file():
                try:
                    return ShardedTensors(path, reader) if name.endswith(_INDEX) else reader(path)
                except OSError as error:
                    raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from error
        raise CheckpointError(
            f"`{self.owner}`: {self} must hold weights, one of {', '.join(_WEIGHTS)}. "
            f"Found: {self._listing()}. {CONVERT}"
        )

    def _listing(self) -> str:
        return ", ".join(sorted(path.name for path in self.folder.iterdir())) or "nothing"


def _existing_directory(source: str | os.PathLike[str], owner: str) -> Path:
    if not isinstance(source, str | os.PathLike):
        raise TypeError(checks.message(owner, "source", "be a path", source))
    path = Path(source)
    if not path.is_dir():
        cure = "Give a local directory in HuggingFace's layout; a model that is known by name, download first."
        raise CheckpointError(checks.message(owner, "source", "be an existing directory", str(source), cure))
    if not os.access(path, os.R_OK | os.X_OK):
        raise CheckpointError(checks.message(owner, "source", "be a directory that may be read", str(source)))
    return path
