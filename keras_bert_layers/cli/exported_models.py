"""Exported models by their paths: those that `serve` serves, and the searches that `demo` shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from keras_bert_layers.cli.models import EXPORT, PROGRAM_FILE, keras_file, source_of
from keras_bert_layers.cli.onnx_file import SUFFIX
from keras_bert_layers.cli.rest_model import OnnxRestModel, RestModel, SavedModelRestModel, TaskRestModel
from keras_bert_layers.export.json_request import DEFAULT_SIGNATURE


def open_exported(folder: Path, name: str, *, owner: str) -> RestModel:
    """The model in a directory or a file, under a name for addresses.

    Raises:
        FileNotFoundError: there is none.
    """
    if folder.suffix == SUFFIX:
        return OnnxRestModel(folder, name=name)
    written = keras_file(source_of(str(folder)))
    if written is not None and (written == folder or importlib.util.find_spec("tensorflow") is None):
        return TaskRestModel(written, name=name)
    path, version = find_export(folder, owner=owner)
    return SavedModelRestModel(path, name=name, version=version)


def open_search(folder: Path, *, owner: str) -> RestModel | None:
    """What `export_search` wrote: an ONNX file, a SavedModel, or a directory of its versions; None for anything else.

    Raises:
        ValueError: it is the export of another task.
    """
    versions = folder.glob(f"[0-9]*/{PROGRAM_FILE}")
    is_export = folder.suffix == SUFFIX or (folder / PROGRAM_FILE).is_file() or any(versions)
    if not is_export:
        return None
    model = open_exported(folder, folder.name, owner=owner)
    if list(model.inputs[DEFAULT_SIGNATURE]) != ["query"]:
        cure = "Give the `.keras` file or the directory that it was exported from."
        raise ValueError(f"`{owner}`: {folder} must be what `export_search` wrote, or no exported model. {cure}")
    return model


def find_export(folder: Path, *, owner: str) -> tuple[Path, int]:
    """The SavedModel to serve in a directory, and its version.

    Raises:
        FileNotFoundError: there is none.
    """
    for candidate in (folder, folder / EXPORT):
        if (candidate / PROGRAM_FILE).is_file():
            return candidate, 1
        found = [path.parent for path in candidate.glob(f"*/{PROGRAM_FILE}") if path.parent.name.isdecimal()]
        if found:
            newest = max(found, key=lambda path: int(path.name))
            return newest, int(newest.name)
    cure = "`keras-bert-layers train` and `task.export` write one."
    raise FileNotFoundError(f"`{owner}`: DIR must hold a SavedModel, {PROGRAM_FILE}. Received: {folder}. {cure}")
