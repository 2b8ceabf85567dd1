"""`whole_file`: saves a Keras model to a file that replaces the old one when it is complete."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import h5py
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.written_whole import full_disk, written_whole


@contextlib.contextmanager
def whole_file(owner: str, filepath: str | PathLike[str], *, overwrite: bool) -> Iterator[str]:
    """Yields a path to save to; when the block ends, the file is read back and replaces the one at `filepath`.

    What is at `filepath` stays as it is if anything fails. Keras alone writes to another machine, such as `gs://`, and
    forms other than `.keras` and `.weights.h5`, and asks where a file may not be overwritten.

    Raises:
        OSError: the file cannot be written, or the disk is full.
    """
    path = str(filepath)
    is_one_file = "://" not in path and path.endswith((".keras", ".weights.h5"))
    if not is_one_file or (not overwrite and Path(filepath).exists()):
        yield path
        return
    try:
        with written_whole(Path(filepath)) as unfinished:
            yield str(unfinished)
            _read_back(unfinished)
    except Exception as error:
        reason = full_disk(error, Path(filepath))
        if reason is None and not isinstance(error, OSError | zipfile.BadZipFile):
            raise
        rule, cure = "be a file that can be written", f"{reason or error}. What was there is unchanged."
        raise OSError(checks.message(owner, "filepath", rule, str(filepath), cure)) from error


def _read_back(path: Path) -> None:
    """Reads all of a `.keras` or HDF5 file: on a full disk, HDF5 may leave half of one without an error."""
    if path.suffix == ".keras" and path.is_file():
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise OSError(f"The written file is damaged at {damaged}")
    elif path.suffix == ".h5":
        with h5py.File(path) as file:
            file.visititems(_read_values)


def _read_values(_: str, found: h5py.Group | h5py.Dataset) -> None:
    if isinstance(found, h5py.Dataset):
        found.read_direct(np.empty(found.shape, found.dtype))
