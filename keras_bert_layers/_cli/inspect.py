"""`keras-bert-layers inspect`: what a checkpoint is, from its files alone."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

OWNER = "inspect"
HELP = "show what a checkpoint is, without loading it"
DESCRIPTION = """\
Shows a checkpoint's layout, task, number of parameters, config, tokenizer, and every weight: its name in the model and
in the file, number format and shape. No weight is loaded. What cannot be read is said in its place; loading would fail
with the same words.

SOURCE is what convert reads."""
EXAMPLES = """\
examples:
  keras-bert-layers inspect all-MiniLM-L6-v2
  keras-bert-layers inspect hf://google-bert/bert-base-uncased
  keras-bert-layers inspect my-classifier --json | jq .tasks"""
_ABSENT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("source", metavar="SOURCE", help="the checkpoint")
    parser.add_argument("--json", action="store_true", help="one JSON object for machines")


def run(arguments: argparse.Namespace) -> int:
    """Inspects; 0."""
    from keras_bert_layers._cli.facts import facts_of

    facts = facts_of(arguments.source)
    if arguments.json:
        sys.stdout.write(f"{json.dumps(facts, ensure_ascii=False)}\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(facts))
    return 0


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """The facts for people."""
    problems = facts["problems"]
    head = {
        "source": facts["source"],
        "layout": facts["layout"],
        "task": problems.get("tasks") or _tasks(facts["tasks"]),
        "parameters": problems.get("weights") or f"{facts['parameters']:,}",
    }
    yield from _pairs(head)
    yield from ("", "config")
    yield from _pairs(facts["config"], indent="  ")
    yield from ("", "tokenizer")
    if facts["tokenizer"] is None:
        yield f"  {problems.get('tokenizer', 'none')}"
    else:
        yield from _pairs(facts["tokenizer"], indent="  ")
    if facts["weights"]:
        yield ""
        yield from _table(("weight", "stored as", "dtype", "shape"), [_weight(row) for row in facts["weights"]])
    if facts["other_tensors"]:
        yield ""
        rows = [
            (row["stored"], row["dtype"], _shape(row["shape"]), row["reason"] or "no place for it: loading fails")
            for row in facts["other_tensors"]
        ]
        yield from _table(("not read", "dtype", "shape", "why"), rows)


def _tasks(tasks: Sequence[Mapping[str, Any]]) -> str:
    """The tasks, each with its options, the one that the checkpoint names first."""
    words = []
    for task in tasks:
        options = ", ".join(f"{name}={value!r}" for name, value in task["options"].items())
        words.append(f"{task['name']} ({options})" if options else task["name"])
    return "; ".join(words) or "none stated: an encoder"


def _weight(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    name = row["ours"] or _ABSENT
    name = f"{name} ({row['part']})" if row["part"] else name
    if row["stored"] is None:
        return name, "not there", _ABSENT, _ABSENT
    return name, row["stored"], row["dtype"], _shape(row["shape"])


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _pairs(values: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    width = max(map(len, values))
    for name, value in values.items():
        yield f"{indent}{name:{width}}  {value}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows under a header, every column as wide as it must be."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        yield "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
