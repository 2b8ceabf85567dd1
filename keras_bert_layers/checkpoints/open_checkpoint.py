"""`open_checkpoint`: from what a user names to the checkpoint of its kind."""

from __future__ import annotations

import os
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.checkpoint import Checkpoint
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.google_directory import GoogleDirectory
from keras_bert_layers.checkpoints.google_hub_directory import GoogleHubDirectory
from keras_bert_layers.checkpoints.hub import resolve
from keras_bert_layers.checkpoints.huggingface_directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.kerashub_directory import KerasHubDirectory


def open_checkpoint(source: str | os.PathLike[str], *, owner: str) -> Checkpoint:
    """The checkpoint that `source` names.

    Args:
        source: a directory, or a name that `hub.resolve` knows.
        owner: the public function that was called, for errors.

    Returns:
        A checkpoint of the kind that the directory's files show; one that shows none counts as HuggingFace's.

    Raises:
        TypeError: `source` is not a path.
        CheckpointError: there is no such directory, or it may not be read; the name leads nowhere.
    """
    directory = _existing_directory(resolve(source, owner=owner), owner)
    if KerasHubDirectory.describes(directory):
        return KerasHubDirectory(directory, owner=owner)
    if GoogleDirectory.describes(directory):
        return GoogleDirectory(directory, owner=owner)
    if GoogleHubDirectory.describes(directory):
        return GoogleHubDirectory(directory, owner=owner)
    return HuggingFaceDirectory(directory, owner=owner)


def _existing_directory(source: str | os.PathLike[str], owner: str) -> Path:
    if not isinstance(source, str | os.PathLike):
        raise TypeError(checks.message(owner, "source", "be a path", source))
    path = Path(source)
    if not path.is_dir():
        raise CheckpointError(checks.message(owner, "source", "be an existing directory", str(source)))
    if not os.access(path, os.R_OK | os.X_OK):
        raise CheckpointError(checks.message(owner, "source", "be a directory that may be read", str(source)))
    return path
