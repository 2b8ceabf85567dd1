"""Atomic writes: a file or directory is replaced when the new one is complete and on the disk, not before."""

import contextlib
import ctypes
import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from keras_bert_layers._internal.files.disk_space import disk_fault

_SWAP = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS


@contextlib.contextmanager
def atomic_write(target: Path, *, owner: str, argument: str, replace: bool = True) -> Iterator[Path]:
    """Yields a free path that replaces `target` when the block ends without an exception.

    The path has the name of `target` and is in a hidden directory beside it. All of it is flushed to the disk before it
    replaces `target`. After an exception, or an interrupt, it is removed, with the parents that were created, and
    `target` is as before. A killed process leaves the hidden directory; the next success removes it.

    A file system that cannot swap two directories in one step, such as NFS, needs two. A process that is killed between
    them leaves the old directory as `replaced` in the hidden one, and the next call moves it back first.

    Args:
        target: a path on a local disk; parents are created.
        owner: the class or function that was called, for errors.
        argument: its argument that holds `target`.
        replace: False raises FileExistsError if `target` is a directory that holds something when the new one is
            complete, such as that of another process.

    Raises:
        OSError: `target` could not be written; the disk is full, for example. All errors of a disk that the block
            raises become this one, TensorFlow's too; other exceptions are passed on.

    Examples:
        >>> target = Path(tempfile.mkdtemp()) / "words.txt"
        >>> with atomic_write(target, owner="save", argument="path") as unfinished:
        ...     _ = unfinished.write_text("good")
        ...     target.exists()
        False
        >>> target.read_text()
        'good'
    """
    target = target.absolute()
    with hidden_directory(target, owner=owner, argument=argument) as folder:
        unfinished = folder / target.name
        yield unfinished
        synchronise(unfinished, *unfinished.rglob("*"))
        _move(unfinished, target, backup=_backup(folder) if replace else None)
        synchronise(target.parent)


@contextlib.contextmanager
def hidden_directory(target: Path, *, owner: str, argument: str) -> Iterator[Path]:
    """Yields a new directory beside `target`, as `atomic_write`, and leaves it to the block to replace `target`."""
    target = target.absolute()
    made_parents: list[Path] = []
    try:
        made_parents += [parent for parent in target.parents if not parent.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        _bring_back(target)
        prefix = f"{_prefix(target)}{os.getpid()}-"
        # `atomic_write` writes one level deeper, as a temporary directory itself is closed to other users.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=prefix, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        for leftover in leftovers(target):
            shutil.rmtree(leftover, ignore_errors=True)
    except BaseException as error:
        for parent in made_parents:
            with contextlib.suppress(OSError):
                parent.rmdir()
        fault = disk_fault(error, target, owner=owner, argument=argument) if isinstance(error, Exception) else None
        if fault is None:
            raise
        raise fault from error


def leftovers(target: Path) -> list[Path]:
    """The hidden directories for `target` of processes that have ended."""
    prefix = _prefix(target)
    numbers = {
        folder: folder.name.removeprefix(prefix).partition("-")[0]
        for folder in target.absolute().parent.iterdir()
        if folder.name.startswith(prefix)
    }
    return [folder for folder, number in numbers.items() if number.isdecimal() and not _is_running(int(number))]


def synchronise(*paths: Path) -> None:
    """Flushes files and directories to the disk: otherwise a rename may reach it before them."""
    for path in paths:
        if path.is_dir() and os.name == "nt":  # directories have no file descriptor there
            continue
        number = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _prefix(target: Path) -> str:
    """What the names of all hidden directories for `target` begin with, on this machine."""
    return f".{target.name}-{socket.gethostname()}-"


def _backup(folder: Path) -> Path:
    return folder / "replaced"


def _bring_back(target: Path) -> None:
    """Moves back what a killed process had moved away, if there is no `target`."""
    for leftover in leftovers(target):
        if not target.exists() and _backup(leftover).exists():
            _backup(leftover).rename(target)


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
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from error
            raise
        return
    if unfinished.exists() and _swap(unfinished, target):
        return
    target.rename(backup)
    try:
        os.replace(unfinished, target)
    except BaseException:
        backup.rename(target)
        raise


def _swap(path: Path, other: Path) -> bool:
    """Swaps two absolute paths in one step; False if the system or the file system cannot."""
    library = None if os.name == "nt" else ctypes.CDLL(None)
    # Linux's and macOS's functions have the same arguments.
    swap = getattr(library, "renameat2", None) or getattr(library, "renameatx_np", None)
    return swap is not None and swap(0, os.fsencode(path), 0, os.fsencode(other), _SWAP) == 0


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
