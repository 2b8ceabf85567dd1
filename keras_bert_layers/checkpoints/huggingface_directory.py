"""`HuggingFaceDirectory`: the files of a checkpoint in HuggingFace's layout, sentence-transformers' included."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_layers.checkpoints.checkpoint import StatedTask
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.dense_tensors import DenseTensors
from keras_bert_layers.checkpoints.huggingface_names import ignored_reason, stored_names
from keras_bert_layers.checkpoints.huggingface_tasks import huggingface_tasks
from keras_bert_layers.checkpoints.json_file import read_json_object
from keras_bert_layers.checkpoints.safetensors_file import SafetensorsFile
from keras_bert_layers.checkpoints.sentence_transformers import (
    MODULES_FILE,
    dense_folder,
    is_cross_encoder,
    sentence_encoder_settings,
    transformer_folder,
)
from keras_bert_layers.checkpoints.sharded_tensors import ShardedTensors
from keras_bert_layers.checkpoints.tensor_file import TensorFile
from keras_bert_layers.checkpoints.tokenizer_files import stated_max_length, tokenizer_settings
from keras_bert_layers.checkpoints.torch_file import CONVERT, TorchFile
from keras_bert_layers.checkpoints.weight_row import Layout
from keras_bert_layers.checkpoints.weight_table import DENSE_PROJECTION_ROWS
from keras_bert_layers.config import BertConfig

if TYPE_CHECKING:
    from keras_bert_layers.preprocessing import BertTokenizer

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
        source: the directory, which exists.
        owner: the public function that was called, for errors.
    """

    layout = Layout.HUGGINGFACE

    def __init__(self, source: Path, *, owner: str):
        self.owner = owner
        self.root = source
        self.folder = self.root / transformer_folder(self.root)

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def is_sentence_transformers(self) -> bool:
        """Whether the directory is a sentence encoder of sentence-transformers: it has a `modules.json`."""
        return (self.root / MODULES_FILE).is_file() and not is_cross_encoder(self.root)

    @cached_property
    def config_values(self) -> dict[str, Any]:
        """`config.json` as it stands."""
        path = self.folder / "config.json"
        if not path.is_file():
            raise CheckpointError(
                f"`{self.owner}`: {self} must hold a config.json. Found: {_listing(self.folder)}. "
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

    def stated_tasks(self) -> tuple[StatedTask, ...]:
        """The encoders of sentence-transformers, or what the class named in `config.json` was trained for."""
        if self.is_sentence_transformers:
            settings = sentence_encoder_settings(self.root, hidden_dim=self.config.hidden_dim)
            options = dataclasses.asdict(settings)
            if settings.projection_dim is not None:
                return (StatedTask("sentence_encoder", options, DENSE_PROJECTION_ROWS),)
            plain = {name: options[name] for name in ("pooling", "normalize")}
            return StatedTask("sentence_encoder", plain), StatedTask("dual_encoder", plain)
        tasks = huggingface_tasks(self.folder / "config.json", self.config_values)
        if is_cross_encoder(self.root):
            return tuple(sorted(tasks, key=lambda task: task.name != "cross_encoder"))
        return tasks

    def stored_names(self, names: Iterable[str]) -> dict[str, str]:
        """The table's name -> the file's; see `huggingface_names.stored_names`."""
        return stored_names(names, source=str(self))

    def ignored_reason(self, name: str) -> str | None:
        """Heads and buffers may be left out."""
        return ignored_reason(name)

    def tokenizer_options(self) -> dict[str, Any]:
        """What the files say, with `reference="huggingface"`; weights are not needed, nor is the config."""
        settings = tokenizer_settings(self.folder, self._tokenizer_config)
        if (self.folder / "config.json").is_file():
            self._check_size(len(settings.vocabulary))
        return {**dataclasses.asdict(settings), "reference": "huggingface"}

    def tokenizer(self) -> BertTokenizer:
        """The tokenizer of the files."""
        from keras_bert_layers.preprocessing import BertTokenizer

        return BertTokenizer(**self.tokenizer_options())

    def max_length(self) -> int:
        """What the files say, or as many tokens as the encoder has positions; see `stated_max_length`."""
        positions = self.config.max_sequence_length
        return stated_max_length(self.folder, self._tokenizer_config, positions=positions)

    @cached_property
    def _tokenizer_config(self) -> dict[str, Any]:
        path = self.folder / "tokenizer_config.json"
        return read_json_object(path) if path.is_file() else {}

    def _check_size(self, num_tokens: int) -> None:
        """Fewer tokens than embeddings are usual: matrices are padded to a round size. More cannot be looked up."""
        num_embeddings = self.config_values.get("vocab_size")
        if isinstance(num_embeddings, int) and num_tokens > num_embeddings:
            raise CheckpointError(
                f"{self}: the tokenizer must not have more tokens than config.json's vocab_size of {num_embeddings}. "
                f"Received: {num_tokens} tokens. Vocabulary and weights do not belong together."
            )

    def open_weights(self) -> TensorFile:
        """The checkpoint's tensors: safetensors if there, else a PyTorch file.

        Raises:
            CheckpointError: there is no file of weights, or it is damaged; see `SafetensorsFile` and `TorchFile`.
        """
        dense = dense_folder(self.root) if self.is_sentence_transformers else None
        tensors = self._open_weights(self.folder)
        return tensors if dense is None else DenseTensors(tensors, self._open_weights(dense))

    def _open_weights(self, folder: Path) -> TensorFile:
        for name, reader in _WEIGHTS.items():
            path = folder / name
            if path.is_file():
                try:
                    return ShardedTensors(path, reader) if name.endswith(_INDEX) else reader(path)
                except OSError as error:
                    raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from error
        raise CheckpointError(
            f"`{self.owner}`: {folder} must hold weights, one of {', '.join(_WEIGHTS)}. "
            f"Found: {_listing(folder)}. {CONVERT}"
        )


def _listing(folder: Path) -> str:
    return ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
