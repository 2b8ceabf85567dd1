"""Show the facts of a checkpoint, without loading it.

Shows a checkpoint's layout, tasks, number of parameters, config, tokenizer, and every weight: its name in the model and
in the file, its dtype and its shape, and what other programs read differently in the same directory. No weight is
loaded. If a part cannot be read, its place shows the error that loading would raise.

SOURCE is as for convert, or an .onnx file that convert wrote.

Examples:
  keras-bert-layers inspect all-MiniLM-L6-v2
  keras-bert-layers inspect hf://google-bert/bert-base-uncased
  keras-bert-layers inspect my-classifier --json | jq .tasks
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from keras_bert_layers.cli.models import keras_file, source_of
from keras_bert_layers.cli.onnx_file import SUFFIX, onnx_facts

if TYPE_CHECKING:
    from keras_bert_layers.checkpoints.checkpoint import Checkpoint

OWNER = "inspect"

_ABSENT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("source", metavar="SOURCE", help="the checkpoint")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Inspects, and returns 0."""
    facts = facts_of(arguments.source)
    lines = [json.dumps(facts, ensure_ascii=False)] if arguments.json else _lines(facts)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def facts_of(source: str) -> dict[str, Any]:
    """The facts of a source.

    Args:
        source: a directory, `hf://…`, a preset's name, a `.keras` file, or an ONNX file.

    Returns:
        Plain values: `source`, `layout`, `tasks` (each with `name` and `options`), `parameters`, `config`, `tokenizer`,
        `weights` (each with `ours`, `part`, `stored`, `dtype` and `shape`; `stored` is None if the checkpoint lacks
        it), `other_tensors` (each with `stored`, `dtype`, `shape` and the `reason` why it is left out, or None),
        `read_differently` (the entries of `checkpoints.read_differently`), and `problems`: the errors of what could not
        be read, by the names above.

    Raises:
        CheckpointError: there is no such source, or its config cannot be read.
    """
    source = source_of(source)
    if path := keras_file(source):
        return _keras_facts(path)
    if Path(source).suffix == SUFFIX:
        return onnx_facts(Path(source), owner=OWNER)
    from keras_bert_layers.checkpoints.hub import resolve
    from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint
    from keras_bert_layers.checkpoints.reading_differences import differences_of

    checkpoint = open_checkpoint(resolve(source, owner=OWNER), owner=OWNER)
    facts: dict[str, Any] = {"source": source, "layout": checkpoint.layout.value, "tasks": None, "parameters": None}
    facts.update(config=checkpoint.config.to_dict(), tokenizer=None, weights=[], other_tensors=[])
    facts.update(read_differently=[], problems={})
    with _error_noted(facts["problems"], "tasks"):
        facts["tasks"] = [{"name": task.name, "options": dict(task.options)} for task in checkpoint.trained_heads()]
    with _error_noted(facts["problems"], "tokenizer"):
        facts["tokenizer"] = _tokenizer_facts(checkpoint.tokenizer_options(), checkpoint.max_length())
    with _error_noted(facts["problems"], "weights"):
        facts.update(_weight_facts(checkpoint))
    with _error_noted(facts["problems"], "read_differently"):
        facts["read_differently"] = differences_of(checkpoint)
    return facts


@contextlib.contextmanager
def _error_noted(problems: dict[str, str], name: str) -> Iterator[None]:
    """Records an error instead of raising it, so that the other facts are still read."""
    try:
        yield
    except (ValueError, OSError) as error:  # CheckpointError is a ValueError
        problems[name] = str(error)


def _tokenizer_facts(options: Mapping[str, Any], max_length: int) -> dict[str, Any]:
    from keras_bert_layers.preprocessing.tokenizer import LONG_OPTIONS

    facts = {name: value for name, value in options.items() if name not in LONG_OPTIONS}
    return {"vocabulary_size": len(options["vocabulary"]), **facts, "max_length": max_length}


def _weight_facts(checkpoint: Checkpoint) -> dict[str, Any]:
    """The weights of the encoder and of every trained head, with their tensors."""
    from keras_bert_layers.checkpoints.weights.table import PART_NAMES, backbone_rows

    infos = checkpoint.weights.infos
    names = checkpoint.stored_names(infos)
    heads = [row for task in checkpoint.trained_heads() for row in task.rows]
    weights: list[dict[str, Any]] = []
    known: set[str] = set()
    for row in dict.fromkeys([*backbone_rows(checkpoint.config, checkpoint.parts), *heads]):
        cell = row.stored(checkpoint.layout)
        options = [name for name in (cell.name, cell.alias) if name in names] if cell else []
        known.update(options)
        stored = names[options[0]] if options else None
        dtype, shape = infos[stored] if stored else (None, None)
        part = None if row.part_index is None else PART_NAMES[row.num_parts][row.part_index]
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
        parts = list(values["config"].get("tasks", {}).values())  # of `CombinedTasks`, which share a tokenizer
        settings = parts[0]["config"] if parts else values["config"]
        is_task = "backbone" in settings
        part = settings["backbone"]["config"] if is_task else settings
        config = part["config"] if "config" in part else {key: part[key] for key in ("vocabulary_size", "hidden_dim")}
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise CheckpointError(
            f"`{OWNER}`: {path} is not a complete .keras file of this package: {type(error).__name__}: {error}."
        ) from error
    preprocessor = (settings.get("preprocessor") or {}).get("config")
    return {
        "source": str(path),
        "layout": "keras",
        "tasks": [{"name": part["class_name"], "options": _options(part["config"])} for part in (values, *parts)]
        if is_task
        else [],
        "parameters": sum(math.prod(tensor["shape"]) for tensor in tensors),
        "config": config,
        "tokenizer": preprocessor and _tokenizer_facts(preprocessor["tokenizer"]["config"], preprocessor["max_length"]),
        "weights": tensors,
        "other_tensors": [],
        "read_differently": [],
        "problems": {},
    }


def _options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The task's own arguments that are not objects."""
    return {
        name: value
        for name, value in settings.items()
        if name != "name" and value is not None and not isinstance(value, dict)
    }


def _hdf5_tensors(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    import h5py

    found: list[tuple[str, Any]] = []
    with h5py.File(file, "r") as tree:
        tree.visititems(lambda name, node: found.append((name, node)) if isinstance(node, h5py.Dataset) else None)
        for name, node in found:
            if not name.startswith(("optimizer/", "_training_place/")):
                yield {"ours": None, "part": None, "stored": name, "dtype": str(node.dtype), "shape": node.shape}


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """The facts for people."""
    problems = facts["problems"]
    yield from _pairs(
        {
            "source": facts["source"],
            "layout": facts["layout"],
            "task": problems.get("tasks") or _tasks(facts["tasks"]),
            "parameters": problems.get("weights") or f"{facts['parameters']:,}",
        }
    )
    yield from ("", "config", *_pairs(facts["config"], indent="  "), "", "tokenizer")
    if facts["tokenizer"] is None:
        yield f"  {problems.get('tokenizer', 'none')}"
    else:
        yield from _pairs(facts["tokenizer"], indent="  ")
    yield from _table(("weight", "stored as", "dtype", "shape"), [_weight(row) for row in facts["weights"]])
    others = [
        (row["stored"], row["dtype"], _shape(row["shape"]), row["reason"] or "not part of the model: loading fails")
        for row in facts["other_tensors"]
    ]
    yield from _table(("not read", "dtype", "shape", "why"), others)
    entries = [(row["part"], row["program"], row["text"], row["difference"]) for row in facts["read_differently"]]
    yield from _table(("read differently", "by", "in the text", "how"), entries)


def _tasks(tasks: Sequence[Mapping[str, Any]]) -> str:
    """The tasks with their options, the checkpoint's own task first."""
    words = []
    for task in tasks:
        options = ", ".join(f"{name}={value!r}" for name, value in task["options"].items())
        words.append(f"{task['name']} ({options})" if options else task["name"])
    return "; ".join(words) or "none stated: an encoder"


def _weight(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    name = row["ours"] or _ABSENT
    name = f"{name} ({row['part']})" if row["part"] else name
    if row["stored"] is None:
        return name, "missing", _ABSENT, _ABSENT
    return name, row["stored"], row["dtype"], _shape(row["shape"])


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _pairs(values: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    width = max(map(len, values))
    return (f"{indent}{name:{width}}  {value}" for name, value in values.items())


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """An empty line, the header and the rows, with each column as wide as needed; nothing if there are no rows."""
    if not rows:
        return
    yield ""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        yield "  ".join(map(str.ljust, row, widths)).rstrip()
