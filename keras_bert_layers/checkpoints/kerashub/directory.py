"""`KerasHubDirectory`: the files of a KerasHub preset."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import Checkpoint, TrainedHead, by_metadata
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.checkpoints.files.hdf5_file import Hdf5File
from keras_bert_layers.checkpoints.files.joined_tensors import JoinedTensors
from keras_bert_layers.checkpoints.files.json_file import check_integer, optional_json, read_json_object
from keras_bert_layers.checkpoints.files.metadata import KEY, Metadata
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile
from keras_bert_layers.checkpoints.files.vocabulary import check_num_tokens, read_vocabulary
from keras_bert_layers.checkpoints.kerashub.heads import CLASSES, kerashub_heads
from keras_bert_layers.checkpoints.kerashub.names import TASK_WEIGHTS, WEIGHTS, ignored_reason, table_name
from keras_bert_layers.checkpoints.kerashub.objects import tokenizer_object
from keras_bert_layers.checkpoints.kerashub.tokenizer import tokenizer_options
from keras_bert_layers.checkpoints.weights.row import Layout
from keras_bert_layers.config import BertConfig

CONFIG = "config.json"
TASK = "task.json"
TOKENIZER = "tokenizer.json"
PREPROCESSOR = "preprocessor.json"
METADATA = "metadata.json"
VOCABULARY = "assets/tokenizer/vocabulary.txt"

# keras_hub, models/*_preprocessor.py: the length if a preset does not state it.
_DEFAULT_LENGTH = 512


class KerasHubDirectory(Checkpoint):
    """A KerasHub preset: the files that `save_to_preset` of a `BertBackbone` or of one of its tasks wrote.

    The weights are read from Keras's files: neither keras_hub nor a second model is needed. `save_kerashub` also writes
    metadata, so its presets are read exactly.
    """

    layout = Layout.KERASHUB

    @staticmethod
    def describes(source: Path) -> bool:
        """Whether a directory holds a preset: its `config.json` is an object as Keras serializes it."""
        path = source / CONFIG
        return path.is_file() and "registered_name" in read_json_object(path)

    @cached_property
    def config(self) -> BertConfig:
        """`config.json`, every key honoured or refused, with the activation and the epsilon of the metadata."""
        path = self.root / CONFIG
        with naming(path):
            stated = BertConfig.from_kerashub(read_json_object(path))
        if self._metadata is None:
            return stated
        if not self._metadata.agrees(stated, "kerashub"):
            raise self._disagreement("config", CONFIG)
        return self._metadata.config

    @cached_property
    def _metadata(self) -> Metadata | None:
        """The metadata in `metadata.json`, a file that KerasHub writes and does not read.

        It writes a new one whenever it saves a model into the directory, so the metadata is removed when the weights
        that it belongs to change.

        References:
            `_save_metadata` in keras_hub, src/utils/preset_utils.py. docs/decisions/0011-what-kerashub-cannot-say.md.
        """
        path = self.root / METADATA
        values = optional_json(path).get(KEY)
        return None if values is None else Metadata.from_dict(path, values)

    def _disagreement(self, part: str, file: str) -> CheckpointError:
        return CheckpointError(
            f"{self.root / METADATA}: the {part} under `{KEY}` must agree with {file}, which was changed later. "
            f"Remove the entry `{KEY}` to read the directory as KerasHub does."
        )

    def open_weights(self) -> TensorFile:
        """Opens the tensors of the encoder's file, and of the head's if there is one.

        Raises:
            CheckpointError: there is no file of weights, or one is damaged; see `Hdf5File`.
        """
        cure = "Copy all files of the preset; weights in several files cannot be read."
        paths = self.existing(self.root, WEIGHTS, cure), self.root / TASK_WEIGHTS
        return JoinedTensors((f"{path.name}/", Hdf5File(path)) for path in paths if path.is_file())

    def table_name(self, name: str) -> str:
        """See `kerashub.names.table_name`."""
        return table_name(name, num_layers=self.config.num_layers)

    def ignored_reason(self, name: str) -> str | None:
        """Heads and optimizer states may be ignored, and all tensors of an unknown task."""
        kind = self._task.get("class_name")
        if name.startswith(f"{TASK_WEIGHTS}/") and kind not in CLASSES:
            return f"the head of a {kind}"
        return ignored_reason(name)

    def trained_heads(self) -> tuple[TrainedHead, ...]:
        """The heads by `task.json`, with the options of the metadata."""
        heads = kerashub_heads(self.root / TASK, self._task)
        return by_metadata(heads, self._metadata, self._disagreement("task", TASK))

    @cached_property
    def _task(self) -> dict[str, Any]:
        return optional_json(self.root / TASK)

    def tokenizer_options(self) -> dict[str, Any]:
        """The arguments by the files, or by the metadata; see `kerashub.tokenizer.tokenizer_options`."""
        cure = "A preset has a tokenizer if one was saved with the model."
        tokenizer = self.existing(self.root, TOKENIZER, cure)
        path = self.existing(self.root, VOCABULARY, cure)
        vocabulary = read_vocabulary(path)
        check_num_tokens(path, len(vocabulary), self.config.vocabulary_size, "config.json's vocabulary_size")
        values = read_json_object(tokenizer)
        options = tokenizer_options(tokenizer, values, vocabulary)
        if self._metadata is not None and self._metadata.tokenizer is not None:
            options |= self._metadata.tokenizer
            written = tokenizer_object(options)["config"]
            if any(values["config"].get(key, value) != value for key, value in written.items() if key != "name"):
                raise self._disagreement("tokenizer", TOKENIZER)
        return {"vocabulary": vocabulary, **options}

    def max_length(self) -> int:
        """`sequence_length` of `preprocessor.json` or KerasHub's default; at most the number of positions."""
        path = self.root / PREPROCESSOR
        arguments = optional_json(path).get("config", {})
        length = arguments.get("sequence_length", _DEFAULT_LENGTH) if isinstance(arguments, dict) else None
        return min(check_integer(path, "sequence_length", length, least=3), self.config.max_sequence_length)
