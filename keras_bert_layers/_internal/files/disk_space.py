"""Full and read-only disks: one error whichever library met it, and a check for room before HDF5 writes."""

import errno
import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from keras_bert_layers._internal import checks

# A disk quota and a limit on the size of files have the same effect as a full disk.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
# NumPy may name no reason; then the disk was full if at most this much is free.
_FULL_BYTES = 64 * 1024

# For the groups and the header of a dataset: some 2 KB in Keras's files.
_DATASET_BYTES = 4096
_FILE_BYTES = 64 * 1024


def disk_fault(error: BaseException, target: Path, *, owner: str, argument: str) -> OSError | None:
    """The error for a user if `target` could not be written because of the disk; None if `error` has another cause.

    Args:
        error: an OSError, or what a library raised instead.
        target: the path that was to be written; it is as before.
        owner: the class or function that was called.
        argument: its argument that holds `target`.

    Returns:
        An OSError with the `errno` of the fault, such as a PermissionError.
    """
    number = _number(error, target)
    if number is None and not isinstance(error, OSError):
        return None
    rule, cure = "be a path that can be written to", "Write to another path."
    if number in FULL:
        rule, cure = "be on a disk with room for it", "Make room, or write to another disk."
    reason = os.strerror(number) if number is not None and number in errno.errorcode else str(error).rstrip(".")
    text = checks.message(owner, argument, rule, str(target), f"{reason}. What was there is unchanged. {cure}")
    # The class belongs to the number, which is set afterwards: it would stand before the text.
    fault = type(OSError(number, ""))(text)
    fault.errno = number
    return fault


def check_writable(target: Path, *, owner: str, argument: str) -> None:
    """Raises what `disk_fault` makes of a folder that cannot be written to: before work that takes long, not after it.

    Args:
        target: the path that will be written; its first parent that exists is tried.
        owner: the class or function that was called, for errors.
        argument: its argument that holds `target`.

    Raises:
        OSError: no file can be made there.
    """
    folder = next(parent for parent in target.absolute().parents if parent.exists())
    try:
        tempfile.TemporaryFile(dir=folder).close()  # has no name on Linux: a process that is killed leaves nothing
    except OSError as error:
        raise disk_fault(error, target, owner=owner, argument=argument) or error from error


def _number(error: BaseException, target: Path) -> int | None:
    """The number of the fault. TensorFlow's and HDF5's errors name it in words only."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    cause: BaseException | None = error
    while cause is not None:
        for number in (*FULL, *_REFUSED):
            if getattr(cause, "errno", None) == number or os.strerror(number) in str(cause):
                return number
        cause = cause.__cause__
    existing = next(parent for parent in target.absolute().parents if parent.exists())
    return errno.ENOSPC if shutil.disk_usage(existing).free < _FULL_BYTES else None


def check_room(folder: Path, sizes: Collection[int]) -> None:
    """Takes the room that an HDF5 file will need, and gives it back at once.

    A write that fails within HDF5 may end the process with a segmentation fault, or raise no error. A limit on the size
    of files counts too, and a quota where the system can take room, which macOS cannot.

    Args:
        folder: where the file will be.
        sizes: the bytes of each dataset.

    Raises:
        OSError: there is too little room.

    Examples:
        >>> check_room(Path(tempfile.gettempdir()), [3072, 512])
    """
    needed = sum(sizes) + _DATASET_BYTES * len(sizes) + _FILE_BYTES
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, needed)
                return
        except OSError as error:
            if error.errno in FULL:
                raise
        file.truncate(needed)  # takes no room, but knows the limit on the size of files
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
