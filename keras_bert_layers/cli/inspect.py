"""Show what a checkpoint is, without loading it.

Shows a checkpoint's layout, tasks, number of parameters, config, tokenizer, and every weight: its name in the model and
in the file, its dtype and its shape. No weight is loaded. If a part cannot be read, its place shows the error that
loading would raise.

SOURCE is as for convert.

Examples:
  keras-bert-layers inspect all-MiniLM-L6-v2
  keras-bert-layers inspect hf://google-bert/bert-base-uncased
  keras-bert-layers inspect my-classifier --json | jq .tasks
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_ABSENT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("source", metavar="SOURCE", help="the checkpoint")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Inspects, and returns 0."""
    from keras_bert_layers.cli.facts import facts_of

    facts = facts_of(arguments.source)
    lines = [json.dumps(facts, ensure_ascii=False)] if arguments.json else _lines(facts)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


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
