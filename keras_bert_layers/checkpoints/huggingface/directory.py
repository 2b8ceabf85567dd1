"""`HuggingFaceDirectory`: a checkpoint of HuggingFace transformers or of sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import Checkpoint, TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import missing, naming
from keras_bert_layers.checkpoints.files.joined_tensors import JoinedTensors, sharded_tensors
from keras_bert_layers.checkpoints.files.json_file import optional_json, read_json_object
from keras_bert_layers.checkpoints.files.safetensors_file import SafetensorsFile
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile
from keras_bert_layers.checkpoints.files.torch_file import CONVERT, TorchFile
from keras_bert_layers.checkpoints.files.vocabulary import check_num_tokens
from keras_bert_layers.checkpoints.huggingface.heads import huggingface_heads
from keras_bert_layers.checkpoints.huggingface.names import ignored_reason, table_name
from keras_bert_layers.checkpoints.huggingface.tokenizer import stated_max_length, tokenizer_options
from keras_bert_layers.checkpoints.sentence_transformers import modules
from keras_bert_layers.checkpoints.sentence_transformers.dense_tensors import DenseTensors
from keras_bert_layers.checkpoints.weights.row import Layout
from keras_bert_layers.checkpoints.weights.table import DENSE_PROJECTION_ROWS
from keras_bert_layers.config import BertConfig

_INDEX = ".index.json"

# The first of these files that exists is read. Pickles, which can hold programs, are last.
_WEIGHTS: dict[str, Callable[[Path], TensorFile]] = {
    "model.safetensors": SafetensorsFile,
    f"model.safetensors{_INDEX}": SafetensorsFile,
    "pytorch_model.bin": TorchFile,
    f"pytorch_model.bin{_INDEX}": TorchFile,
}


class HuggingFaceDirectory(Checkpoint):
    """A checkpoint in HuggingFace's layout.

    `config.json` and the weights are in the directory itself or, in old sentence-transformers checkpoints, in the
    folder that `modules.json` names. Nothing outside the directory is read.
    """

    layout = Layout.HUGGINGFACE

    def __init__(self, source: Path, *, owner: str):
        super().__init__(source, owner=owner)
        self.folder = self.root / modules.transformer_folder(self.root)

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def is_sentence_transformers(self) -> bool:
        """Whether the directory is a sentence encoder of sentence-transformers: it has a `modules.json`."""
        return (self.root / modules.MODULES_FILE).is_file() and not modules.is_cross_encoder(self.root)

    @cached_property
    def config_values(self) -> dict[str, Any]:
        """The content of `config.json`."""
        cure = "Give the directory that `save_pretrained` wrote."
        return read_json_object(self.existing(self.folder, "config.json", cure))

    @cached_property
    def config(self) -> BertConfig:
        """`config.json` as a `BertConfig`; every key is honoured or refused."""
        with naming(self.folder / "config.json"):
            return BertConfig.from_huggingface(self.config_values)

    def trained_heads(self) -> tuple[TrainedHead, ...]:
        """The encoders of sentence-transformers, or the heads by the class in `config.json`."""
        if self.is_sentence_transformers:
            options = modules.sentence_encoder_options(self.root, hidden_dim=self.config.hidden_dim)
            if "projection_dim" in options:
                return (TrainedHead("sentence_encoder", options, DENSE_PROJECTION_ROWS),)
            return TrainedHead("sentence_encoder", options), TrainedHead("dual_encoder", options)
        tasks = huggingface_heads(self.folder / "config.json", self.config_values)
        if modules.is_cross_encoder(self.root):
            return tuple(sorted(tasks, key=lambda task: task.name != "cross_encoder"))
        return tasks

    def table_name(self, name: str) -> str:
        """See `huggingface.names.table_name`."""
        return table_name(name)

    def ignored_reason(self, name: str) -> str | None:
        """Heads and buffers may be ignored."""
        return ignored_reason(name)

    def tokenizer_options(self) -> dict[str, Any]:
        """The arguments by the files, with `reference="huggingface"`; the config is not needed either."""
        options = tokenizer_options(self.folder, self._tokenizer_config)
        num_embeddings = self.config_values.get("vocab_size") if (self.folder / "config.json").is_file() else None
        if isinstance(num_embeddings, int):
            check_num_tokens(self.folder, len(options["vocabulary"]), num_embeddings, "config.json's vocab_size")
        return {**options, "reference": "huggingface"}

    def max_length(self) -> int:
        """The maximum length by the files, or the number of positions; see `stated_max_length`."""
        positions = self.config.max_sequence_length
        return stated_max_length(self.folder, self._tokenizer_config, positions=positions)

    @cached_property
    def _tokenizer_config(self) -> dict[str, Any]:
        return optional_json(self.folder / "tokenizer_config.json")

    def open_weights(self) -> TensorFile:
        """Opens the checkpoint's tensors: safetensors if there are any, else a PyTorch file.

        Raises:
            CheckpointError: there is no file of weights, or it is damaged; see `SafetensorsFile` and `TorchFile`.
        """
        dense = modules.dense_folder(self.root) if self.is_sentence_transformers else None
        tensors = self._open_weights(self.folder)
        if dense is None:
            return tensors
        return JoinedTensors([("", tensors), ("dense.", DenseTensors(self._open_weights(dense)))])

    def _open_weights(self, folder: Path) -> TensorFile:
        for name, reader in _WEIGHTS.items():
            path = folder / name
            if path.is_file():
                with naming(path):
                    return sharded_tensors(path, reader) if name.endswith(_INDEX) else reader(path)
        raise missing(folder, f"weights, one of {', '.join(_WEIGHTS)}", CONVERT, owner=self.owner)
