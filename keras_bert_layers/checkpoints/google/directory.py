"""`GoogleDirectory`: the files of a checkpoint in the layout of google-research/bert."""

from __future__ import annotations

import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import Checkpoint, TrainedHead, by_metadata
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.checkpoints.files.json_file import read_json_object
from keras_bert_layers.checkpoints.files.metadata import KEY, Metadata
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile
from keras_bert_layers.checkpoints.files.tf1_checkpoint import Tf1Checkpoint, index_checksum, index_path
from keras_bert_layers.checkpoints.files.vocabulary import check_num_tokens, read_vocabulary
from keras_bert_layers.checkpoints.google.casing import lowercases
from keras_bert_layers.checkpoints.google.heads import google_heads
from keras_bert_layers.checkpoints.google.names import ignored_reason
from keras_bert_layers.checkpoints.google.prefix import checkpoint_prefix, has_checkpoint
from keras_bert_layers.checkpoints.weights.row import Layout
from keras_bert_layers.config import BertConfig

CONFIG = "bert_config.json"
VOCABULARY = "vocab.txt"

_CURE = f"Remove the entry `{KEY}` to read the directory as Google's code does"
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# This task has no weights of its own, so only the metadata names it.
_WITHOUT_HEAD = TrainedHead("sentence_encoder")


class GoogleDirectory(Checkpoint):
    """A checkpoint in the layout of google-research/bert: Google's releases of BERT, and what its code trains.

    The directory holds `bert_config.json`, `vocab.txt` and the files of a TensorFlow checkpoint, such as
    `bert_model.ckpt.index` and `bert_model.ckpt.data-00000-of-00001`. TensorFlow is not needed to read them. No file
    states whether text is lower-cased: see `casing.lowercases`. `save_google` also writes metadata, so its directories
    are read exactly.
    """

    layout = Layout.GOOGLE

    @staticmethod
    def describes(source: Path) -> bool:
        """Whether a directory has this layout: a `bert_config.json` or a TensorFlow checkpoint, and no `config.json`.

        HuggingFace's directories that were converted from Google's hold a `bert_config.json` too.
        """
        if (source / "config.json").is_file():
            return False
        return (source / CONFIG).is_file() or has_checkpoint(source)

    @cached_property
    def _values(self) -> dict[str, Any]:
        return read_json_object(self._from_training(CONFIG))

    def _from_training(self, name: str) -> Path:
        return self.existing(self.root, name, "Copy it from the checkpoint from which training started.")

    @cached_property
    def config(self) -> BertConfig:
        """`bert_config.json`, every key honoured or refused, with the GELU and the epsilon of the metadata."""
        return self._stated_config if self._metadata is None else self._metadata.config

    @cached_property
    def _stated_config(self) -> BertConfig:
        values = {key: value for key, value in self._values.items() if key != KEY}
        with naming(self.root / CONFIG):
            return BertConfig.from_google(values)

    @cached_property
    def _metadata(self) -> Metadata | None:
        """The metadata, if it belongs to this config and to these weights.

        google-research/bert sets every key of the file as an attribute and reads those that it knows, so one more key
        changes nothing there. After training with Google's code the directory has other weights, and the metadata is
        ignored.

        References:
            `BertConfig.from_dict` in google-research/bert, modeling.py. docs/decisions/0010-gelu-in-googles-files.md.
        """
        if KEY not in self._values:
            return None
        path = self.root / CONFIG
        metadata = Metadata.from_dict(path, self._values[KEY], has_weights=True)
        if not metadata.agrees(self._stated_config, "google"):
            raise CheckpointError(
                f"{path}: the config under `{KEY}` must agree with the other keys, which were changed later. {_CURE}."
            )
        if has_checkpoint(self.root) and index_checksum(self._prefix) != metadata.weights:
            warnings.warn(
                f"{path}: the settings under `{KEY}` belong to other weights than {index_path(self._prefix).name}, so "
                f"the directory is read as Google's code does. Remove the entry `{KEY}` to silence this.",
                stacklevel=2,
            )
            return None
        return metadata

    @cached_property
    def _prefix(self) -> Path:
        return checkpoint_prefix(self.root, chosen=self.weights_file, owner=self.owner)

    def open_weights(self) -> TensorFile:
        """Opens the variables of the checkpoint; see `prefix.checkpoint_prefix` for which, if there are several.

        Raises:
            CheckpointError: there is no checkpoint, or it is damaged, see `Tf1Checkpoint`; it is of TensorFlow 2, whose
                names are paths in a program's objects.
        """
        checkpoint = Tf1Checkpoint(self._prefix)
        if _OBJECT_GRAPH in checkpoint.infos:
            raise CheckpointError(
                f"{checkpoint.path}: must have variables with Google's names, as tf.train.Saver writes them. Found: "
                "objects of TensorFlow 2 (tf.train.Checkpoint), which only the program that wrote them can read."
            )
        return checkpoint

    def ignored_reason(self, name: str) -> str | None:
        """Heads and optimizer states may be ignored."""
        return ignored_reason(name)

    def trained_heads(self) -> tuple[TrainedHead, ...]:
        """The heads by the variables' names, with the options of the metadata."""
        heads = google_heads(self.weights.infos)
        task = None if self._metadata is None else self._metadata.task
        if task == _WITHOUT_HEAD.name:
            heads = (_WITHOUT_HEAD, *heads)
        rule = f"must agree with the weights, which hold no head of a {task}"
        error = CheckpointError(f"{self.root / CONFIG}: the task under `{KEY}` {rule}. {_CURE}.")
        return by_metadata(heads, self._metadata, error)

    def tokenizer_options(self) -> dict[str, Any]:
        """The arguments by the files, with `reference="google"`, or by the metadata."""
        path = self._from_training(VOCABULARY)
        vocabulary = read_vocabulary(path, _named_lines)
        check_num_tokens(path, len(vocabulary), self.config.vocabulary_size, f"{CONFIG}'s vocab_size")
        options: dict[str, Any] = {"strip_accents": None, "split_chinese": True, "reference": "google"}
        if self._metadata is None or self._metadata.tokenizer is None:
            return {"vocabulary": vocabulary, "lowercase": lowercases(self.root, self._values, vocabulary), **options}
        return {"vocabulary": vocabulary, **options, **self._metadata.tokenizer}

    def max_length(self) -> int:
        """The number of positions of the encoder, or the maximum length of the metadata."""
        stated = None if self._metadata is None else self._metadata.max_length
        return min(stated or self.config.max_sequence_length, self.config.max_sequence_length)


def _named_lines(path: Path) -> list[str] | Path:
    """The tokens of a `vocab.txt` with empty lines in it; the path if it has none.

    SimBERT's has one. For Google's code it is a token that no text can contain; here it gets a name that no text can
    contain.
    """
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    if all(line.rstrip(b"\r") for line in lines):
        return path
    tokens = [line.decode().removesuffix("\r") for line in lines]
    return [token or f"[empty line {number}]" for number, token in enumerate(tokens, start=1)]
