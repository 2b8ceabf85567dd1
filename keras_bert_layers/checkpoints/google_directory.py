"""`GoogleDirectory`: the files of a checkpoint in the layout of google-research/bert."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_layers.checkpoints.checkpoint import StatedTask
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.google_casing import lowercases
from keras_bert_layers.checkpoints.google_names import ignored_reason
from keras_bert_layers.checkpoints.google_notes import GoogleNotes
from keras_bert_layers.checkpoints.google_prefix import checkpoint_prefix, has_checkpoint
from keras_bert_layers.checkpoints.google_tasks import google_tasks
from keras_bert_layers.checkpoints.json_file import MAX_JSON_BYTES, read_json_object
from keras_bert_layers.checkpoints.notes import KEY
from keras_bert_layers.checkpoints.tensor_file import TensorFile
from keras_bert_layers.checkpoints.tf1_checkpoint import Tf1Checkpoint, index_checksum, index_path
from keras_bert_layers.checkpoints.weight_row import Layout
from keras_bert_layers.config import BertConfig
from keras_bert_layers.preprocessing.vocabulary import load_vocabulary

if TYPE_CHECKING:
    from keras_bert_layers.preprocessing import BertTokenizer

CONFIG = "bert_config.json"
VOCABULARY = "vocab.txt"

_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# Tasks whose heads have no weights, so that only the notes tell of them.
_WITHOUT_HEAD = {"sentence_encoder": StatedTask("sentence_encoder")}


class GoogleDirectory:
    """The files of a checkpoint in the layout of google-research/bert, as Google releases BERT and its code trains it.

    `bert_config.json`, `vocab.txt` and the files of one TensorFlow checkpoint, such as `bert_model.ckpt.index` and
    `bert_model.ckpt.data-00000-of-00001`; TensorFlow is not needed to read them. Whether text is lower-cased, the files
    do not say: see `google_casing.lowercases`. A directory that `save_google` wrote also notes what Google's files have
    no words for, and it is read exactly.

    Args:
        source: the directory, which exists.
        owner: the public function that was called, for errors.
    """

    layout = Layout.GOOGLE

    def __init__(self, source: Path, *, owner: str):
        self.owner = owner
        self.root = source

    @staticmethod
    def describes(source: Path) -> bool:
        """Whether a directory has this layout: a `bert_config.json` or a TensorFlow checkpoint, and no `config.json`.

        HuggingFace's directories hold a `bert_config.json` too where they were converted from Google's.
        """
        if (source / "config.json").is_file():
            return False
        return (source / CONFIG).is_file() or has_checkpoint(source)

    def __str__(self) -> str:
        return str(self.root)

    @cached_property
    def _values(self) -> dict[str, Any]:
        path = self.root / CONFIG
        if not path.is_file():
            found = ", ".join(sorted(entry.name for entry in self.root.iterdir())) or "nothing"
            raise CheckpointError(
                f"`{self.owner}`: {self} must hold a {CONFIG}. Found: {found}. "
                "Copy it from the checkpoint with which training began."
            )
        return read_json_object(path)

    @cached_property
    def config(self) -> BertConfig:
        """`bert_config.json`, every key honoured or refused; and what the notes say of the GELU and the epsilon."""
        return self._stated_config if self._notes is None else self._notes.config

    @cached_property
    def _stated_config(self) -> BertConfig:
        values = {key: value for key, value in self._values.items() if key != KEY}
        try:
            return BertConfig.from_google(values)
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{self.root / CONFIG}: {error}") from error

    @cached_property
    def _notes(self) -> GoogleNotes | None:
        """The notes, as long as they speak of this config and of these weights."""
        if KEY not in self._values:
            return None
        path = self.root / CONFIG
        notes = GoogleNotes.from_dict(path, self._values[KEY])
        try:
            agrees = BertConfig.from_google(notes.config.to_google()) == self._stated_config
        except ValueError:
            agrees = False
        if not agrees:
            raise CheckpointError(
                f"{path}: what `{KEY}` notes must agree with the other keys, which were changed since. "
                f"Remove the entry `{KEY}` to read the directory as Google's code does."
            )
        if has_checkpoint(self.root) and index_checksum(self._prefix) != notes.weights:
            warnings.warn(
                f"{path}: what `{KEY}` notes belongs to other weights than {index_path(self._prefix).name}, so that "
                f"the directory is read as Google's code does. Remove the entry `{KEY}` to silence this.",
                stacklevel=2,
            )
            return None
        return notes

    @cached_property
    def _prefix(self) -> Path:
        return checkpoint_prefix(self.root, owner=self.owner)

    def open_weights(self) -> TensorFile:
        """The variables of the checkpoint; see `google_prefix.checkpoint_prefix` for which, where there are several.

        Raises:
            CheckpointError: there is none, none that is named, or it is damaged, see `Tf1Checkpoint`; it is of
                TensorFlow 2, whose names are paths in a program's objects.
        """
        checkpoint = Tf1Checkpoint(self._prefix)
        if _OBJECT_GRAPH in checkpoint.infos:
            raise CheckpointError(
                f"{checkpoint.path}: must have variables with Google's names, as tf.train.Saver writes them. Found: "
                "objects of TensorFlow 2 (tf.train.Checkpoint), which only the program that wrote them reads."
            )
        return checkpoint

    def stored_names(self, names: Iterable[str]) -> dict[str, str]:
        """The table has Google's names as they are."""
        return {name: name for name in names}

    def ignored_reason(self, name: str) -> str | None:
        """Heads and optimizers' states may be left out."""
        return ignored_reason(name)

    def stated_tasks(self) -> tuple[StatedTask, ...]:
        """What the variables' names tell, and the notes with the options that they have."""
        stated = google_tasks(self.open_weights().infos)
        if self._notes is None or self._notes.task is None:
            return stated
        name, options = self._notes.task, self._notes.options
        same = next((task for task in stated if task.name == name), _WITHOUT_HEAD.get(name))
        if same is None:
            raise CheckpointError(
                f"{self.root / CONFIG}: what `{KEY}` notes must agree with the weights, which hold no head of a "
                f"{name}. Remove the entry `{KEY}` to read the directory as Google's code does."
            )
        others = [task for task in stated if task is not same]
        # Of a classifier the notes say all; of the others the files do.
        return StatedTask(name, options if name == "classifier" else {**same.options, **options}, same.rows), *others

    def tokenizer_options(self) -> dict[str, Any]:
        """What the files say, with `reference="google"`, or the notes; weights are not needed."""
        vocabulary = self._vocabulary()
        options: dict[str, Any] = {"strip_accents": None, "split_chinese": True, "reference": "google"}
        if self._notes is None or self._notes.tokenizer is None:
            return {"vocabulary": vocabulary, "lowercase": lowercases(self.root, self._values, vocabulary), **options}
        return {"vocabulary": vocabulary, **options, **self._notes.tokenizer}

    def tokenizer(self) -> BertTokenizer:
        """The tokenizer of the files."""
        from keras_bert_layers.preprocessing import BertTokenizer

        return BertTokenizer(**self.tokenizer_options())

    def _vocabulary(self) -> list[str]:
        path = self.root / VOCABULARY
        if not path.is_file():
            raise CheckpointError(
                f"`{self.owner}`: {self} must hold a {VOCABULARY}. "
                "Copy it from the checkpoint with which training began."
            )
        if path.stat().st_size > MAX_JSON_BYTES:
            raise CheckpointError(f"{path}: must take at most {MAX_JSON_BYTES} bytes. Received: {path.stat().st_size}.")
        try:
            vocabulary = load_vocabulary(_without_empty_lines(path) or path)
        except (ValueError, OSError) as error:
            raise CheckpointError(f"{path}: {error}") from error
        if len(vocabulary) > self.config.vocabulary_size:
            raise CheckpointError(
                f"{path}: must not hold more tokens than {CONFIG}'s vocab_size of {self.config.vocabulary_size}. "
                f"Received: {len(vocabulary)} tokens. Vocabulary and weights do not belong together."
            )
        return vocabulary

    def max_length(self) -> int:
        """As many tokens as the encoder has positions, or what the notes say."""
        noted = None if self._notes is None else self._notes.max_length
        positions = self.config.max_sequence_length
        return positions if noted is None else min(noted, positions)


def _without_empty_lines(path: Path) -> list[str] | None:
    """The tokens of a `vocab.txt` with empty lines in it; None if it has none.

    SimBERT's has one. To Google's code it is a token that no text can hold; here it gets a name that no text can hold.
    """
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    if all(line.rstrip(b"\r") for line in lines):
        return None
    tokens = [line.decode().removesuffix("\r") for line in lines]
    return [token or f"[empty line {number}]" for number, token in enumerate(tokens, start=1)]
