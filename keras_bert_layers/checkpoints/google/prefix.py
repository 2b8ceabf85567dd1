"""`checkpoint_prefix`: finds the TensorFlow checkpoint of a directory."""

from __future__ import annotations

import re
from pathlib import Path

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, missing

# The file in which tf.train.Saver names its last checkpoint.
STATE_FILE = "checkpoint"

_LAST = re.compile(r'^\s*model_checkpoint_path\s*:\s*"(?P<path>[^"]*)"', re.MULTILINE)
_MAX_STATE_BYTES = 1024 * 1024


def has_checkpoint(directory: Path) -> bool:
    """Whether a directory holds the index of a TensorFlow checkpoint."""
    return bool(_names(directory))


def checkpoint_prefix(directory: Path, *, chosen: str | None = None, owner: str) -> Path:
    """The prefix of a directory's TensorFlow checkpoint: its only one, or the one that the file `checkpoint` names.

    Only the last part of the path in that file is used, as directories are moved.

    Args:
        directory: the directory.
        chosen: the prefix that the user named; it exists.
        owner: the public function that was called, for errors.

    Returns:
        A path such as `bert_model.ckpt`, without `.index`.

    Raises:
        CheckpointError: there is no checkpoint, or there are several and `checkpoint` names none of them.
    """
    if chosen is not None:
        return directory / chosen
    names = _names(directory)
    last = _last(directory / STATE_FILE)
    if last in names:
        return directory / last
    if len(names) == 1:
        return directory / names[0]
    if names:
        raise CheckpointError(
            f"`{owner}`: {directory} must hold one TensorFlow checkpoint, or a file `{STATE_FILE}` that names one of "
            f"several. Found: {', '.join(names)}. Remove all but one, or write that file: "
            f'model_checkpoint_path: "{names[-1]}"'
        )
    files = "a TensorFlow checkpoint: files such as bert_model.ckpt.index and bert_model.ckpt.data-00000-of-00001"
    raise missing(directory, files, "Copy all files of the checkpoint.", owner=owner)


def _names(directory: Path) -> list[str]:
    return sorted(path.name.removesuffix(".index") for path in directory.glob("*.index"))


def _last(path: Path) -> str:
    """The name of the last checkpoint; empty if it is not stated."""
    if not path.is_file() or path.stat().st_size > _MAX_STATE_BYTES:
        return ""
    match = _LAST.search(path.read_text(encoding="utf-8", errors="replace"))
    return "" if match is None else re.split(r"[/\\]", match["path"])[-1]
