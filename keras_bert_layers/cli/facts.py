"""The facts that a checkpoint's files state, read without making a model."""

from __future__ import annotations

import contextlib
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.cli.models import keras_file, source_of

OWNER = "inspect"


def facts_of(source: str) -> dict[str, Any]:
    """The facts of a source.

    Args:
        source: a directory, `hf://…`, a preset's name, or a `.keras` file.

    Returns:
        Plain values: `source`, `layout`, `tasks` (each with `name` and `options`), `parameters`, `config`, `tokenizer`,
        `weights` (each with `ours`, `part`, `stored`, `dtype` and `shape`; `stored` is None if the checkpoint lacks
        it), `other_tensors` (each with `stored`, `dtype`, `shape` and the `reason` why it is left out, or None), and
        `problems`: the errors of what could not be read, by the names above.

    Raises:
        CheckpointError: there is no such source, or its config cannot be read.
    """
    source = source_of(source)
    if path := keras_file(source):
        return _keras_facts(path)
    from keras_bert_layers.checkpoints.hub import resolve
    from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint

    checkpoint = open_checkpoint(resolve(source, owner=OWNER), owner=OWNER)
    facts: dict[str, Any] = {"source": source, "layout": checkpoint.layout.value, "tasks": None, "parameters": None}
    facts.update(config=checkpoint.config.to_dict(), tokenizer=None, weights=[], other_tensors=[], problems={})
    with _error_noted(facts["problems"], "tasks"):
        facts["tasks"] = [{"name": task.name, "options": dict(task.options)} for task in checkpoint.trained_heads()]
    with _error_noted(facts["problems"], "tokenizer"):
        facts["tokenizer"] = _tokenizer_facts(checkpoint.tokenizer_options(), checkpoint.max_length())
    with _error_noted(facts["problems"], "weights"):
        facts.update(_weight_facts(checkpoint))
    return facts


@contextlib.contextmanager
def _error_noted(problems: dict[str, str], name: str) -> Iterator[None]:
    """Records an error instead of raising it, so that the other facts are still read."""
    try:
        yield
    except (ValueError, OSError) as error:  # CheckpointError is a ValueError
        problems[name] = str(error)


def _tokenizer_facts(options: Mapping[str, Any], max_length: int) -> dict[str, Any]:
    long = ("vocabulary", "scores", "character_map")
    facts = {name: value for name, value in options.items() if name not in long}
    return {"vocabulary_size": len(options["vocabulary"]), **facts, "max_length": max_length}


def _weight_facts(checkpoint: Any) -> dict[str, Any]:
    """The weights of the encoder and of every trained head, with their tensors."""
    from keras_bert_layers.checkpoints.weights.table import backbone_rows

    infos = checkpoint.weights.infos
    names = checkpoint.stored_names(infos)
    heads = [row for task in checkpoint.trained_heads() for row in task.rows]
    weights, known = [], set()
    for row in dict.fromkeys([*backbone_rows(checkpoint.config), *heads]):
        cell = row.stored(checkpoint.layout)
        options = [name for name in (cell.name, cell.alias) if name in names] if cell else []
        known.update(options)
        stored = names[options[0]] if options else None
        dtype, shape = infos[stored] if stored else (None, None)
        part = None if row.qkv_index is None else ("query", "key", "value")[row.qkv_index]
        weights.append({"ours": row.ours, "part": part, "stored": stored, "dtype": dtype, "shape": shape})
    read = {weight["stored"] for weight in weights} - {None}
    others = []
    for name, stored in names.items():
        if stored not in read:
            reason = "a duplicate of a weight" if name in known else checkpoint.ignored_reason(name)
            if reason is None and not checkpoint.changes_numbers(stored):
                reason = "unknown: loading warns"
            others.append({"stored": stored, **infos[stored]._asdict(), "reason": reason})
    parameters = sum(math.prod(infos[stored].shape) for stored in read)
    return {"weights": weights, "other_tensors": others, "parameters": parameters}


def _keras_facts(path: Path) -> dict[str, Any]:
    """The facts of a `.keras` file of this package: a zip file with JSON and HDF5 inside."""
    from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
    from keras_bert_layers.checkpoints.files.keras_file import check_archive

    if not path.is_file():
        raise CheckpointError(f"`{OWNER}`: no such file: {path}.")
    check_archive(path)
    try:
        with zipfile.ZipFile(path) as archive:
            values = json.loads(archive.read("config.json"))
            with archive.open("model.weights.h5") as file:
                tensors = list(_hdf5_tensors(file))
        settings = values["config"]
        is_task = "backbone" in settings
        config = (settings["backbone"]["config"] if is_task else settings)["config"]
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise CheckpointError(
            f"`{OWNER}`: {path} is not a whole .keras file of this package: {type(error).__name__}: {error}."
        ) from error
    preprocessor = (settings.get("preprocessor") or {}).get("config")
    return {
        "source": str(path),
        "layout": "keras",
        "tasks": [{"name": values["class_name"], "options": _options(settings)}] if is_task else [],
        "parameters": sum(math.prod(tensor["shape"]) for tensor in tensors),
        "config": config,
        "tokenizer": preprocessor and _tokenizer_facts(preprocessor["tokenizer"]["config"], preprocessor["max_length"]),
        "weights": tensors,
        "other_tensors": [],
        "problems": {},
    }


def _options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The task's own arguments that are not objects."""
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
            if not name.startswith(("optimizer/", "_training_place/")):
                yield {"ours": None, "part": None, "stored": name, "dtype": str(node.dtype), "shape": node.shape}
