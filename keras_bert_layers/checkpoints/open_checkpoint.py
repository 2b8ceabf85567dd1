"""`open_checkpoint`: opens a checkpoint of any dialect."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.checkpoint import Checkpoint
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.google.directory import GoogleDirectory
from keras_bert_layers.checkpoints.google.hub_directory import GoogleHubDirectory
from keras_bert_layers.checkpoints.hub import resolve
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.kerashub.directory import KerasHubDirectory

_RECOGNISED: tuple[type[Any], ...] = (KerasHubDirectory, GoogleDirectory, GoogleHubDirectory)


def open_checkpoint(source: str | os.PathLike[str], *, owner: str) -> Checkpoint:
    """Opens the checkpoint that `source` names, without reading its weights.

    Args:
        source: a directory, or a name for `hub.resolve`.
        owner: the public function that was called, for errors.

    Returns:
        The checkpoint. Its files decide the dialect; HuggingFace's is the default.

    Raises:
        TypeError: `source` is not a path.
        CheckpointError: the directory does not exist or may not be read; the name is unknown.
    """
    directory = _existing_directory(resolve(source, owner=owner), owner)
    dialect = next((kind for kind in _RECOGNISED if kind.describes(directory)), HuggingFaceDirectory)
    return dialect(directory, owner=owner)


def _existing_directory(source: str | os.PathLike[str], owner: str) -> Path:
    if not isinstance(source, str | os.PathLike):
        raise TypeError(checks.message(owner, "source", "be a path", source))
    path = Path(source)
    if not path.is_dir():
        raise CheckpointError(checks.message(owner, "source", "be an existing directory", str(source)))
    if not os.access(path, os.R_OK | os.X_OK):
        raise CheckpointError(checks.message(owner, "source", "be a directory that may be read", str(source)))
    return path
