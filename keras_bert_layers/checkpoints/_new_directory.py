"""`new_directory`: a directory that appears whole or not at all."""

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

# A disk quota and a limit on the size of files stop a writer just as a full disk does.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# TensorFlow, HDF5 and NumPy tell of a full disk in words of their own, without a number; then this little is left.
_FULL_BYTES = 64 * 1024


@contextlib.contextmanager
def new_directory(path: str | os.PathLike[str], *, owner: str) -> Iterator[Path]:
    """A directory to write into that becomes `path` when the block ends well.

    Everything is written into a hidden directory beside `path`, brought to the disk, and renamed. After any exception,
    an interrupt included, what was written is removed, and so are parents that were made for it.

    Args:
        path: where the directory shall be: nothing, or an empty directory. Parents are made.
        owner: the public function that was called, for errors; its argument is called `directory`.

    Yields:
        The hidden directory, empty, with the name of `path`.

    Raises:
        TypeError: `path` is not a path.
        CheckpointError: `path` holds something, is a file, or is not local; its parent may not be written to; the disk
            is full; or another OSError came. Other exceptions of the block pass.

    Examples:
        >>> root = Path(tempfile.mkdtemp())
        >>> with new_directory(root / "bert", owner="save_huggingface") as unfinished:
        ...     _ = (unfinished / "vocab.txt").write_text("[PAD]")
        ...     (root / "bert").exists()
        False
        >>> [path.name for path in (root / "bert").iterdir()]
        ['vocab.txt']
    """
    place = _free_place(path, owner)
    made_parents = [parent for parent in place.parents if not parent.exists()]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # One level deeper, as a temporary directory itself is closed to other users.
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as folder:
            unfinished = Path(folder) / place.name
            unfinished.mkdir()
            with _full_disk_named(unfinished, owner, path):
                yield unfinished
                _synchronise(unfinished)
            unfinished.rename(place)
        _synchronise_directory(place.parent)
    except BaseException as error:
        for parent in made_parents:
            with contextlib.suppress(OSError):
                parent.rmdir()
        if isinstance(error, OSError):
            rule = "be a place that may be written to"
            cure = f"{error}. Nothing was left there."
            raise CheckpointError(checks.message(owner, "directory", rule, str(path), cure)) from error
        raise


def _free_place(path: str | os.PathLike[str], owner: str) -> Path:
    """The absolute path, if a directory can be put there."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(checks.message(owner, "directory", "be a path", path))
    if "://" in str(path):
        cure = "Write to a local directory, and copy it there."
        raise CheckpointError(checks.message(owner, "directory", "be a local directory", str(path), cure))
    try:
        place = Path(path).resolve()
        if place.exists() and not place.is_dir():
            cure = "A file of this name is in the way. Give another name."
        elif place.is_dir() and any(place.iterdir()):
            cure = "It holds something. Give another name, or remove it first."
        elif place.is_dir() and (place.is_mount() or place == Path.cwd()):
            cure = "It is empty, but cannot be replaced. Give a directory inside it."
        else:
            return place
    except (OSError, ValueError) as error:
        cure = f"It cannot be looked at: {error}."
    raise CheckpointError(checks.message(owner, "directory", "be new, or an empty directory", str(path), cure))


@contextlib.contextmanager
def _full_disk_named(unfinished: Path, owner: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns whatever a writer says of a full disk into one error."""
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


def _synchronise(directory: Path) -> None:
    """Waits until all that was written lies on the disk: a rename may get there before it."""
    for folder, _, names in os.walk(directory):
        for name in names:
            with Path(folder, name).open("rb") as file:
                os.fsync(file.fileno())
        _synchronise_directory(Path(folder))


def _synchronise_directory(directory: Path) -> None:
    if os.name == "nt":  # a directory has no file number there
        return
    number = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
