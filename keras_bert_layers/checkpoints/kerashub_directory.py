"""`KerasHubDirectory`: the files of a KerasHub preset."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_layers.checkpoints.checkpoint import StatedTask
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.hdf5_file import Hdf5File
from keras_bert_layers.checkpoints.json_file import MAX_JSON_BYTES, read_json_object
from keras_bert_layers.checkpoints.kerashub_names import TASK_WEIGHTS, WEIGHTS, ignored_reason, stored_names
from keras_bert_layers.checkpoints.kerashub_notes import METADATA_FILE, KerasHubNotes
from keras_bert_layers.checkpoints.kerashub_tasks import CLASSES, kerashub_tasks
from keras_bert_layers.checkpoints.kerashub_tokenizer import tokenizer_object, tokenizer_options
from keras_bert_layers.checkpoints.notes import KEY
from keras_bert_layers.checkpoints.tensor_file import TensorFile
from keras_bert_layers.checkpoints.weight_row import Layout
from keras_bert_layers.config import BertConfig
from keras_bert_layers.preprocessing.vocabulary import load_vocabulary

if TYPE_CHECKING:
    from keras_bert_layers.preprocessing import BertTokenizer

CONFIG = "config.json"
TASK = "task.json"
TOKENIZER = "tokenizer.json"
PREPROCESSOR = "preprocessor.json"
VOCABULARY = "assets/tokenizer/vocabulary.txt"

# keras_hub, models/*_preprocessor.py: the length where a preset does not say it.
_DEFAULT_LENGTH = 512


class KerasHubDirectory:
    """The files of a KerasHub preset: what `save_to_preset` of a `BertBackbone` or of a task of it wrote.

    The weights are read from Keras's files themselves: neither keras_hub nor a second model is needed. A preset that
    `save_kerashub` wrote also notes what KerasHub has no words for, and it is read exactly.

    Args:
        source: the directory, which exists.
        owner: the public function that was called, for errors.
    """

    layout = Layout.KERASHUB

    def __init__(self, source: Path, *, owner: str):
        self.owner = owner
        self.root = source

    @staticmethod
    def describes(source: Path) -> bool:
        """Whether a directory holds a preset: its `config.json` is Keras's frame round an object."""
        path = source / CONFIG
        return path.is_file() and "registered_name" in read_json_object(path)

    def __str__(self) -> str:
        return str(self.root)

    @cached_property
    def config(self) -> BertConfig:
        """`config.json`, every key honoured or refused; and what the notes say of the activation and the epsilon."""
        stated = self._stated_config
        noted = self._notes.config
        if noted is None:
            return stated
        try:
            agrees = BertConfig.from_kerashub(noted.to_kerashub()) == stated
        except ValueError:
            agrees = False
        if not agrees:
            raise self._disagreement("config", CONFIG)
        return noted

    @cached_property
    def _stated_config(self) -> BertConfig:
        path = self.root / CONFIG
        try:
            return BertConfig.from_kerashub(read_json_object(path))
        except CheckpointError:
            raise
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{path}: {error}") from error

    @cached_property
    def _notes(self) -> KerasHubNotes:
        return KerasHubNotes.read(self.root)

    def _disagreement(self, part: str, file: str) -> CheckpointError:
        return CheckpointError(
            f"{self.root / METADATA_FILE}: what `{KEY}` notes of the {part} must agree with {file}, which was changed "
            f"since. Remove the entry `{KEY}` to read the directory as KerasHub does."
        )

    def open_weights(self) -> TensorFile:
        """The tensors of the encoder's file, and of the head's where there is one.

        Raises:
            CheckpointError: there is no file of weights, or one is damaged; see `Hdf5File`.
        """
        path = self.root / WEIGHTS
        if not path.is_file():
            found = ", ".join(sorted(path.name for path in self.root.iterdir()))
            raise CheckpointError(
                f"`{self.owner}`: {self} must hold {WEIGHTS}. Found: {found or 'nothing'}. "
                "Copy all files of the preset; weights in several files cannot be read."
            )
        return _Files([path for path in (path, self.root / TASK_WEIGHTS) if path.is_file()])

    def stored_names(self, names: Iterable[str]) -> dict[str, str]:
        """The table's name -> file and place; see `kerashub_names.stored_names`."""
        return stored_names(names, num_layers=self.config.num_layers, source=str(self))

    def ignored_reason(self, name: str) -> str | None:
        """Heads and the states of optimizers may be left out, and all of a task that is not known."""
        kind = self._task.get("class_name")
        if name.startswith(f"{TASK_WEIGHTS}/") and kind not in CLASSES:
            return f"the head of a {kind}"
        return ignored_reason(name)

    def stated_tasks(self) -> tuple[StatedTask, ...]:
        """What `task.json` says, with the options that the notes have."""
        stated = kerashub_tasks(self.root / TASK, self._task)
        noted = self._notes.task
        if noted is None:
            return stated
        same = next((task for task in stated if task.name == noted), None)
        if same is None:
            raise self._disagreement("task", TASK)
        trained = StatedTask(noted, {**same.options, **self._notes.options}, same.rows)
        return (trained, *(task for task in stated if task is not same))

    @cached_property
    def _task(self) -> dict[str, Any]:
        path = self.root / TASK
        return read_json_object(path) if path.is_file() else {}

    def tokenizer_options(self) -> dict[str, Any]:
        """What the files say; weights are not needed. See `kerashub_tokenizer.tokenizer_options`."""
        path = self.root / TOKENIZER
        for needed in (path, self.root / VOCABULARY):
            if not needed.is_file():
                raise CheckpointError(
                    f"`{self.owner}`: {self} must hold {needed.relative_to(self.root)}. A preset has a tokenizer if "
                    "one was saved with the model."
                )
        vocabulary = self._vocabulary()
        values = read_json_object(path)
        options = tokenizer_options(path, values, vocabulary)
        noted = self._notes.tokenizer
        if noted is not None:
            said = tokenizer_object({**options, **noted})["config"]
            agrees = all(values["config"].get(key, value) == value for key, value in said.items() if key != "name")
            if not agrees:
                raise self._disagreement("tokenizer", TOKENIZER)
            options = {**options, **noted}
        return {"vocabulary": vocabulary, **options}

    def tokenizer(self) -> BertTokenizer:
        """The tokenizer of the files."""
        from keras_bert_layers.preprocessing import BertTokenizer

        return BertTokenizer(**self.tokenizer_options())

    def _vocabulary(self) -> list[str]:
        path = self.root / VOCABULARY
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise CheckpointError(f"{path}: must take at most {MAX_JSON_BYTES} bytes. Received: {size} bytes.")
        try:
            vocabulary = load_vocabulary(path)
        except (ValueError, OSError) as error:
            raise CheckpointError(f"{path}: {error}") from error
        num_embeddings = self.config.vocabulary_size
        if len(vocabulary) > num_embeddings:
            raise CheckpointError(
                f"{path}: must not hold more tokens than config.json's vocabulary_size of {num_embeddings}. "
                f"Received: {len(vocabulary)} tokens. Vocabulary and weights do not belong together."
            )
        return vocabulary

    def max_length(self) -> int:
        """`sequence_length` of `preprocessor.json`, KerasHub's default without one; at most the encoder's positions."""
        path = self.root / PREPROCESSOR
        arguments = read_json_object(path).get("config") if path.is_file() else {}
        length = arguments.get("sequence_length", _DEFAULT_LENGTH) if isinstance(arguments, dict) else None
        if isinstance(length, bool) or not isinstance(length, int) or length < 3:
            raise CheckpointError(f"{path}: `sequence_length` must be an integer of at least 3. Received: {length!r}.")
        return min(length, self.config.max_sequence_length)


class _Files:
    """The tensors of several files, each under its file's name and its place there."""

    def __init__(self, paths: Iterable[Path]):
        self._files = {path.name: Hdf5File(path) for path in paths}
        self.infos = {
            f"{file}/{name}": info for file, tensors in self._files.items() for name, info in tensors.infos.items()
        }

    def read(self, name: str) -> np.ndarray:
        file, _, place = name.partition("/")
        return self._files[file].read(place)
