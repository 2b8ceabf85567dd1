"""`written_whole`: replaces a file or a directory when the new one is complete and on the disk, and not before."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

# A disk quota and a limit on the size of files have the same effect as a full disk.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# TensorFlow, HDF5 and NumPy report a full disk without an error number; then at most this much is free.
_FULL_BYTES = 64 * 1024


@contextlib.contextmanager
def written_whole(target: Path, *, replace: bool = True) -> Iterator[Path]:
    """Yields a free path that replaces `target` when the block ends without an exception.

    The path has the name of `target` and is in a hidden directory beside it. All of it is flushed to the disk before it
    replaces `target`. After an exception, or an interrupt, it is removed, with the parents that were created, and
    `target` is as before. A killed process leaves the hidden directory; the next success removes it.

    Args:
        target: a path on a local disk; parents are created.
        replace: False raises FileExistsError if `target` is a directory that holds something when the new one is
            complete, such as that of another process.

    Examples:
        >>> target = Path(tempfile.mkdtemp()) / "words.txt"
        >>> with written_whole(target) as unfinished:
        ...     _ = unfinished.write_text("good")
        ...     target.exists()
        False
        >>> target.read_text()
        'good'
    """
    target = target.absolute()
    made_parents = [parent for parent in target.parents if not parent.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # One level deeper, as a temporary directory itself is closed to other users.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{_prefix(target)}{os.getpid()}-") as folder:
            unfinished = Path(folder) / target.name
            yield unfinished
            _synchronise(unfinished, *unfinished.rglob("*"))
            _move(unfinished, target, backup=Path(folder) / "replaced" if replace else None)
        _synchronise(target.parent)
        _sweep(target)
    except BaseException:
        for parent in made_parents:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def full_disk(error: BaseException, folder: Path) -> str | None:
    """The reason if an exception came from a full disk, whichever library raised it; None if not."""
    number = error.errno if isinstance(error, OSError) else None
    if number in _FULL:
        return os.strerror(number)
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    return os.strerror(errno.ENOSPC) if shutil.disk_usage(existing).free < _FULL_BYTES else None


def _prefix(target: Path) -> str:
    """What the names of all hidden directories for `target` begin with, on this machine."""
    return f".{target.name}-{socket.gethostname()}-"


def _synchronise(*paths: Path) -> None:
    """Flushes files and directories to the disk: otherwise a rename may reach it before them."""
    for path in paths:
        if path.is_dir() and os.name == "nt":  # directories have no file descriptor there
            continue
        number = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _move(unfinished: Path, target: Path, *, backup: Path | None) -> None:
    """Moves a file or a directory to `target`; if that fails, what was there is back.

    Without a backup, a directory must be new: a rename replaces no directory that holds something.
    """
    if backup is None or not target.is_dir():
        try:
            with contextlib.suppress(OSError):
                target.rmdir()  # if it is an empty directory
            os.replace(unfinished, target)
        except OSError as error:
            if target.is_dir():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.ENOTEMPTY), str(target)) from error
            raise
        return
    target.rename(backup)  # no system replaces a directory in one step
    try:
        os.replace(unfinished, target)
    except BaseException:
        backup.rename(target)
        raise


def _sweep(target: Path) -> None:
    """Removes hidden directories of processes that have ended."""
    prefix = _prefix(target)
    for folder in target.parent.iterdir():
        number = folder.name.removeprefix(prefix).partition("-")[0]
        if folder.name.startswith(prefix) and number.isdecimal() and not _is_running(int(number)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: int) -> bool:
    if os.name == "nt":  # `os.kill` would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
