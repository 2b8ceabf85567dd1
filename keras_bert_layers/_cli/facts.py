"""What a checkpoint's files say, read without making a model."""

from __future__ import annotations

import contextlib
import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

OWNER = "inspect"

_KERAS_FILES = ("config.json", "model.weights.h5")
_OPTIMIZER = "optimizer/"


def facts_of(source: str) -> dict[str, Any]:
    """What is known of a source.

    Args:
        source: a directory, `hf://…`, a preset's name, or a `.keras` file.

    Returns:
        Plain values: `source`, `layout`, `tasks` (each with `name` and `options`), `parameters`, `config`, `tokenizer`,
        `weights` (each with `ours`, `part`, `stored`, `dtype` and `shape`; `stored` is None where the checkpoint lacks
        it), `other_tensors` (each with `stored`, `dtype`, `shape` and the `reason` why it is left out, or None), and
        `problems`: what could not be read, by the names above.

    Raises:
        CheckpointError: there is no such source, or its config is not read.
    """
    if Path(source).suffix == ".keras":
        return _keras_facts(Path(source))
    from keras_bert_layers.checkpoints.hub import resolve
    from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint

    checkpoint = open_checkpoint(resolve(source, owner=OWNER), owner=OWNER)
    found: dict[str, Any] = {"source": source, "layout": checkpoint.layout.value}
    found.update(tasks=None, parameters=None, config=checkpoint.config.to_dict(), tokenizer=None)
    found.update(weights=[], other_tensors=[], problems={})
    with _noted(found["problems"], "tasks"):
        found["tasks"] = [{"name": task.name, "options": dict(task.options)} for task in checkpoint.stated_tasks()]
    with _noted(found["problems"], "tokenizer"):
        found["tokenizer"] = _tokenizer_facts(checkpoint.tokenizer_options(), checkpoint.max_length())
    with _noted(found["problems"], "weights"):
        found.update(_weight_facts(checkpoint))
    return found


@contextlib.contextmanager
def _noted(problems: dict[str, str], name: str) -> Iterator[None]:
    """Notes an error instead of raising it: the other facts are wanted all the same."""
    from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

    try:
        yield
    except (CheckpointError, ValueError, OSError) as error:
        problems[name] = str(error)


def _tokenizer_facts(options: Mapping[str, Any], max_length: int) -> dict[str, Any]:
    facts = {name: value for name, value in options.items() if name != "vocabulary"}
    return {"vocabulary_size": len(options["vocabulary"]), **facts, "max_length": max_length}


def _weight_facts(checkpoint: Any) -> dict[str, Any]:
    """The rows of the encoder and of every stated head beside the tensors that they stand for."""
    from keras_bert_layers.checkpoints.weight_table import backbone_rows

    infos = checkpoint.open_weights().infos
    names = checkpoint.stored_names(infos)
    heads = [row for task in checkpoint.stated_tasks() for row in task.rows]
    weights, known = [], set()
    for row in dict.fromkeys([*backbone_rows(checkpoint.config), *heads]):
        cell = row.stored(checkpoint.layout)
        options = [name for name in (cell.name, cell.again) if name in names] if cell else []
        known.update(options)
        stored = names[options[0]] if options else None
        dtype, shape = infos[stored] if stored else (None, None)
        part = None if row.third is None else ("query", "key", "value")[row.third]
        weights.append({"ours": row.ours, "part": part, "stored": stored, "dtype": dtype, "shape": shape})
    read = {weight["stored"] for weight in weights}
    others = [
        {"stored": stored, **infos[stored]._asdict(), "reason": _reason(checkpoint, name, known)}
        for name, stored in names.items()
        if stored not in read
    ]
    parameters = _num_values(infos[stored].shape for stored in read if stored)
    return {"weights": weights, "other_tensors": others, "parameters": parameters}


def _reason(checkpoint: Any, name: str, known: set[str]) -> str | None:
    return "the same weight once more" if name in known else checkpoint.ignored_reason(name)


def _keras_facts(path: Path) -> dict[str, Any]:
    """What a `.keras` file of this package says: a zip file with JSON and HDF5 inside."""
    from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
    from keras_bert_layers.checkpoints.keras_file import check_archive

    if not path.is_file():
        raise CheckpointError(f"`{OWNER}`: no such file: {path}.")
    check_archive(path)
    try:
        with zipfile.ZipFile(path) as archive:
            values = json.loads(archive.read(_KERAS_FILES[0]))
            with archive.open(_KERAS_FILES[1]) as file:
                tensors = list(_hdf5_tensors(file))
        settings = values["config"]
        encoder = settings["backbone"]["config"] if "backbone" in settings else settings
        config = encoder["config"]
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise CheckpointError(
            f"`{OWNER}`: {path} is not a whole .keras file of this package: {type(error).__name__}: {error}."
        ) from error
    tokenizer = None
    preprocessor = (settings.get("preprocessor") or {}).get("config")
    if preprocessor is not None:
        tokenizer = _tokenizer_facts(preprocessor["tokenizer"]["config"], preprocessor["max_length"])
    return {
        "source": str(path),
        "layout": "keras",
        "tasks": [{"name": values["class_name"], "options": _options(settings)}] if "backbone" in settings else [],
        "parameters": _num_values(tensor["shape"] for tensor in tensors),
        "config": config,
        "tokenizer": tokenizer,
        "weights": tensors,
        "other_tensors": [],
        "problems": {},
    }


def _options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The task's own arguments that are not themselves objects."""
    return {
        name: value
        for name, value in settings.items()
        if name != "name" and value is not None and not isinstance(value, dict)
    }


def _hdf5_tensors(file: Any) -> Iterator[dict[str, Any]]:
    import h5py

    found: list[tuple[str, Any]] = []
    with h5py.File(file, "r") as tree:
        tree.visititems(lambda name, node: found.append((name, node)) if isinstance(node, h5py.Dataset) else None)
        for name, node in found:
            if not name.startswith(_OPTIMIZER):
                yield {"ours": None, "part": None, "stored": name, "dtype": str(node.dtype), "shape": node.shape}


def _num_values(shapes: Iterable[tuple[int, ...]]) -> int:
    return sum(math.prod(shape) for shape in shapes)
