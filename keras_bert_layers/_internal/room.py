"""`check_room`: refuses to start an HDF5 file on a full disk."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from keras_bert_layers._internal.disk_fault import FULL

# For the groups and the header of a dataset: some 2 KB in Keras's files.
_DATASET_BYTES = 4096
_FILE_BYTES = 64 * 1024


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
