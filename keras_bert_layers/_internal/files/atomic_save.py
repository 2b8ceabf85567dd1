"""`save` and `save_weights` of Keras models, which replace the old files when the new ones are complete."""

import contextlib
import io
import itertools
import json
import math
import os
import re
import zipfile
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write, hidden_directory, leftovers, synchronise
from keras_bert_layers._internal.files.disk_space import check_room

_RECORD = "shards"  # in the hidden directory: the names of the shards to remove, if they are not in the index


def save_shards(owner: str, save: Callable[[Path], list[Path]], path: Path) -> None:
    """Saves weights as Keras's index and shards; the old ones can be loaded until the new index replaces the old one.

    `bert.weights.json` names its shards: `bert_00000.weights.h5`, `bert_00001.weights.h5` and so on. The new ones get
    the next numbers that are free, and the old ones are removed once the new index is there. So at every moment the
    index names complete shards of one model. Keras always opens number 0, so where the index does not name it, it is an
    HDF5 file without weights. A killed process leaves shards that no index names, and the next success removes them.

    Args:
        owner: the class whose method was called, for errors.
        save: saves the weights to an index and to shards beside it, and returns the shards in their order.
        path: the index; for a name in `.h5` it has that name in `.json`, as in Keras.

    Raises:
        OSError: a file cannot be written; the disk is full, for example.
    """
    index = path.absolute().with_suffix(".json")
    with hidden_directory(index, owner=owner, argument="filepath") as folder:
        shards = save(folder / path.name)
        names = _free_names(index, len(shards))
        unused = {*names, *_names_in(index), *_recorded(index)}
        (folder / _RECORD).write_text("\n".join(unused), encoding="utf-8")
        _rename(folder / index.name, dict(zip((shard.name for shard in shards), names, strict=True)))
        synchronise(*shards, folder / index.name)
        try:
            for shard, name in zip(shards, names, strict=True):
                os.replace(shard, index.with_name(name))
            if not index.with_name(_name(index, 0)).exists():
                _empty(index, owner)
            synchronise(index.parent)
            os.replace(folder / index.name, index)
            synchronise(index.parent)
        finally:
            _remove(unused - _names_in(index), index, owner)


def _name(index: Path, number: int) -> str:
    """The name of a shard, as in Keras."""
    return f"{index.stem.replace('.weights', '')}_{number:05}.weights.h5"


def _free_names(index: Path, count: int) -> list[str]:
    """The first `count` consecutive names that no file has."""
    runs = ([_name(index, number) for number in range(start, start + count)] for start in itertools.count())
    return next(names for names in runs if not any(index.with_name(name).exists() for name in names))


def _names_in(index: Path) -> set[str]:
    """The shards of an index; none if there is no index, and no other files, whatever it holds."""
    try:
        values = json.loads(index.read_bytes())["weight_map"].values()
    except (FileNotFoundError, ValueError, LookupError, TypeError, AttributeError):
        return set()
    pattern = re.compile(re.escape(_name(index, 0)).replace("00000", "[0-9]{5,}"))
    return {name for value in values for name in np.ravel(value).tolist() if pattern.fullmatch(str(name))}


def _recorded(index: Path) -> set[str]:
    """The shards that killed processes may have left."""
    records = [leftover / _RECORD for leftover in leftovers(index)]
    return {name for record in records if record.exists() for name in record.read_text(encoding="utf-8").splitlines()}


def _rename(index: Path, names: dict[str, str]) -> None:
    """Gives the shards in an index their new names."""
    content = json.loads(index.read_bytes())
    for key, value in content["weight_map"].items():
        content["weight_map"][key] = [names[name] for name in np.ravel(value).tolist()]
    index.write_text(json.dumps(content, indent=4), encoding="utf-8")


def _remove(names: set[str], index: Path, owner: str) -> None:
    """Removes shards; one that cannot be removed stays, as the new weights are there."""
    for name in sorted(names, reverse=True):
        with contextlib.suppress(OSError):
            if name == _name(index, 0) and index.exists():
                _empty(index, owner)
            else:
                index.with_name(name).unlink()


def _empty(index: Path, owner: str) -> None:
    """Writes an HDF5 file without weights as number 0."""
    content = io.BytesIO()
    h5py.File(content, "w").close()
    with atomic_write(index.with_name(_name(index, 0)), owner=owner, argument="filepath") as unfinished:
        unfinished.write_bytes(content.getvalue())


def save(
    model: keras.Model, filepath: str | PathLike[str], overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
) -> None:
    """Writes a `.keras` file, as `keras.Model.save`; a file there is replaced when the new one is complete.

    Raises:
        ValueError: the name is of an HDF5 file, from which Keras cannot make these models again.
    """
    if str(filepath).endswith((".h5", ".hdf5")):
        cure = 'Keras could not load it again. For the weights alone: `save_weights("model.weights.h5")`.'
        raise ValueError(checks.message(type(model).__name__, "filepath", "end in .keras", str(filepath), cure))
    atomic_save(model, partial(keras.Model.save, model), filepath, overwrite=overwrite, zipped=zipped, **kwargs)


def save_weights(
    model: keras.Model, filepath: str | PathLike[str], overwrite: bool = True, max_shard_size: float | None = None
) -> None:
    """Writes the weights, as `keras.Model.save_weights`; what is there is replaced when the new is complete.

    Under `max_shard_size`, the new files get other numbers than the old ones, which are removed afterwards.
    """
    write = partial(keras.Model.save_weights, model)
    atomic_save(model, write, filepath, overwrite=overwrite, max_shard_size=max_shard_size)


def atomic_save(
    model: keras.Model, save: Callable[..., None], filepath: str | PathLike[str], *, overwrite: bool, **options: Any
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
        with atomic_write(path, owner=owner, argument="filepath") as unfinished:
            save_checked(unfinished)


def _sizes(model: keras.Model) -> list[int]:
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
