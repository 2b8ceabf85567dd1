"""`save` and `save_weights` of Keras models, which replace the old files when the new ones are complete."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np

from keras_bert_layers._internal.room import check_room
from keras_bert_layers._internal.whole_shards import save_shards
from keras_bert_layers._internal.written_whole import written_whole


def save(
    model: Any, filepath: str | PathLike[str], overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
) -> None:
    """Writes a `.keras` file, as `keras.Model.save`; a file there is replaced when the new one is complete."""
    save_whole(model, partial(keras.Model.save, model), filepath, overwrite=overwrite, zipped=zipped, **kwargs)


def save_weights(
    model: Any, filepath: str | PathLike[str], overwrite: bool = True, max_shard_size: float | None = None
) -> None:
    """Writes the weights, as `keras.Model.save_weights`; what is there is replaced when the new is complete.

    Under `max_shard_size`, the new files get other numbers than the old ones, which are removed afterwards.
    """
    write = partial(keras.Model.save_weights, model)
    save_whole(model, write, filepath, overwrite=overwrite, max_shard_size=max_shard_size)


def save_whole(
    model: Any, save: Callable[..., None], filepath: str | PathLike[str], *, overwrite: bool, **options: Any
) -> None:
    """Calls Keras's `save` or `save_weights`; the new file is read back, then it replaces the one at `filepath`.

    What is at `filepath` stays as it is if anything fails; so do the files of weights in shards. Keras alone writes to
    another machine, such as `gs://`, and forms other than `.keras` and weights, and asks where a file may not be
    overwritten.

    Args:
        model: the model.
        save: its method of `keras.Model`.
        filepath: where to save.
        overwrite: whether a file may be replaced without asking.
        **options: further arguments of `save`.

    Raises:
        OSError: the file cannot be written; the disk is full, for example.
    """
    path = Path(filepath)
    is_sharded = options.get("max_shard_size") is not None
    names = ("weights.json", "weights.h5") if is_sharded else (".weights.h5", ".keras")
    is_ours = "://" not in str(filepath) and path.name.endswith(names) and options.get("zipped") is not False
    if not is_ours or (not overwrite and path.exists()):
        save(filepath, overwrite=overwrite, **options)
        return

    def save_checked(unfinished: Path) -> list[Path]:
        check_room(unfinished.parent, _sizes(model))
        save(unfinished, **options)
        files = sorted(unfinished.parent.glob("*.weights.h5")) if is_sharded else [unfinished]
        for file in files:
            _read_back(file)
        return files

    owner = type(model).__name__
    if is_sharded:
        save_shards(owner, save_checked, path)
    else:
        with written_whole(path, owner=owner, argument="filepath") as unfinished:
            save_checked(unfinished)


def _sizes(model: Any) -> list[int]:
    """The bytes of each variable of a model and its optimizer, at most."""
    optimizer = getattr(model, "optimizer", None)
    variables = [*model.variables, *(optimizer.variables if optimizer is not None else ())]
    return [math.prod(variable.shape) * (8 if "64" in str(variable.dtype) else 4) for variable in variables]


def _read_back(path: Path) -> None:
    """Reads all of a `.keras` or HDF5 file: on a full disk, HDF5 may leave half of one without an error."""
    if path.suffix == ".keras":
        try:
            with zipfile.ZipFile(path) as archive:
                damaged = archive.testzip()
        except zipfile.BadZipFile as error:
            raise OSError(f"The written file is damaged: {error}") from error
        if damaged is not None:
            raise OSError(f"The written file is damaged at {damaged}")
    else:
        with h5py.File(path) as file:
            file.visititems(_read_values)


def _read_values(_: str, found: h5py.Group | h5py.Dataset) -> None:
    if isinstance(found, h5py.Dataset):
        found.read_direct(np.empty(found.shape, found.dtype))
