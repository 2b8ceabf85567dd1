"""`new_directory`: creates a directory atomically."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError


@contextlib.contextmanager
def new_directory(path: str | os.PathLike[str], *, owner: str) -> Iterator[Path]:
    """Yields a directory to write into, which becomes `path` when the block ends without an exception.

    Everything is written into a hidden directory next to `path`, flushed to the disk, and renamed. After an exception,
    or an interrupt, all of it is removed, and so are the parents that were created.

    Args:
        path: the directory to create; it may exist if it is empty. Parents are created.
        owner: the public function that was called, for errors; its argument is called `directory`.

    Yields:
        The hidden directory, empty, with the name of `path`.

    Raises:
        TypeError: `path` is not a path.
        CheckpointError: `path` is not empty, is a file, or is not local; its parent is not writable; the disk is full;
            or another OSError was raised. Other exceptions of the block are passed on.

    Examples:
        >>> import tempfile
        >>> root = Path(tempfile.mkdtemp())
        >>> with new_directory(root / "bert", owner="save_huggingface") as unfinished:
        ...     _ = (unfinished / "vocab.txt").write_text("[PAD]")
        ...     (root / "bert").exists()
        False
        >>> [path.name for path in (root / "bert").iterdir()]
        ['vocab.txt']
    """
    target = _free_target(path, owner)
    try:
        with atomic_write(target, owner=owner, argument="directory", replace=False) as unfinished:
            unfinished.mkdir()
            yield unfinished
    except OSError as error:
        raise CheckpointError(str(error)) from error


def _free_target(path: str | os.PathLike[str], owner: str) -> Path:
    """The absolute path, if a directory can be created there."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(checks.message(owner, "directory", "be a path", path))
    if "://" in str(path):
        cure = "Write to a local directory, and copy it there."
        raise CheckpointError(checks.message(owner, "directory", "be a local directory", str(path), cure))
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_dir():
            cure = "A file of this name is in the way. Give another name."
        elif target.is_dir() and any(target.iterdir()):
            cure = "It is not empty. Give another name, or remove it first."
        elif target.is_dir() and (target.is_mount() or target == Path.cwd()):
            cure = "It is empty, but cannot be replaced. Give a directory inside it."
        else:
            return target
    except (OSError, ValueError) as error:
        cure = f"It cannot be read: {error}."
    raise CheckpointError(checks.message(owner, "directory", "be new, or an empty directory", str(path), cure))
