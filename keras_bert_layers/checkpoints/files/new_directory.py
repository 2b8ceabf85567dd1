"""`new_directory`: writes a directory atomically, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

# A disk quota and a limit on the size of files have the same effect as a full disk.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# TensorFlow, HDF5 and NumPy report a full disk without an error number; then at most this much is free.
_FULL_BYTES = 64 * 1024


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
        >>> root = Path(tempfile.mkdtemp())
        >>> with new_directory(root / "bert", owner="save_huggingface") as unfinished:
        ...     _ = (unfinished / "vocab.txt").write_text("[PAD]")
        ...     (root / "bert").exists()
        False
        >>> [path.name for path in (root / "bert").iterdir()]
        ['vocab.txt']
    """
    target = _free_target(path, owner)
    made_parents = [parent for parent in target.parents if not parent.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # One level deeper, as a temporary directory itself is closed to other users.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as folder:
            unfinished = Path(folder) / target.name
            unfinished.mkdir()
            with _full_disk_named(unfinished, owner, path):
                yield unfinished
                _synchronise(unfinished, *unfinished.rglob("*"))
            unfinished.rename(target)
        _synchronise(target.parent)
    except BaseException as error:
        for parent in made_parents:
            with contextlib.suppress(OSError):
                parent.rmdir()
        if isinstance(error, OSError):
            rule = "be a directory that may be written to"
            cure = f"{error}. Nothing was left there."
            raise CheckpointError(checks.message(owner, "directory", rule, str(path), cure)) from error
        raise


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


@contextlib.contextmanager
def _full_disk_named(unfinished: Path, owner: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns every error about a full disk into one error."""
    try:
        yield
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        if number not in _FULL and shutil.disk_usage(unfinished).free >= _FULL_BYTES:
            raise
        rule = "be on a disk with room for the checkpoint"
        reason = os.strerror(number or errno.ENOSPC)
        cure = f"{reason}. Nothing was left there. Make room, or write to another disk."
        raise CheckpointError(checks.message(owner, "directory", rule, str(path), cure)) from error


def _synchronise(*paths: Path) -> None:
    """Flushes files and directories to the disk: otherwise a rename may reach it before them."""
    for path in paths:
        if path.is_dir() and os.name == "nt":  # directories have no file descriptor there
            continue
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
