"""Sentences with several ways to go on, from files in SWAG's formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from keras_bert_layers.data._csv_rows import csv_rows, wrong_number
from keras_bert_layers.data._row_collector import RowCollector
from keras_bert_layers.data._text_file import numbered_lines
from keras_bert_layers.data.codah_file import label_problem
from keras_bert_layers.data.columns import Columns
from keras_bert_layers.data.jsonl_file import json_object

REQUIRED = ("sent1", "sent2", "ending0", "ending1", "label")
ENDING = re.compile(r"ending(\d+)")


def read_swag(path: str | PathLike[str], *, on_error: str = "raise") -> Columns:
    r"""Reads prompts, their choices and the right one from a CSV file with a header, or from one JSON object a line.

    The prompt is `sent1`. A choice is `sent2`, with which the next sentence starts, and one of `ending0`, `ending1` and
    so on, with a blank between the two. The right one is `label`; other columns are not read.

    Args:
        path: a UTF-8 file, plain or gzip, a byte order mark allowed. It is JSON lines if it starts with `{`.
        on_error: what to do with a row that lacks one of these or has an empty one (only `sent2` may be), has fewer
            than two endings, a label that is none of them, or cannot be read. `"raise"`, or `"skip"`: leave it out,
            count it, and warn once.

    Returns:
        One row a row, in the columns `prompts` (strings), `choices` (lists of strings) and `labels` (integers, the
        right choice of the row, counted from 0).

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a row that cannot be used, under `"raise"`; no rows at all.

    Examples:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "swag.csv"
        >>> _ = path.write_text("sent1,sent2,ending0,ending1,label\nThe cat is tired.,It,sleeps.,drives home.,0\n")
        >>> read_swag(path)
        Columns(prompts=['The cat is tired.'], choices=[['It sleeps.', 'It drives home.']], labels=[0])

    References:
        Zellers et al. 2018, arXiv:1808.05326.
    """
    path = Path(path)
    collector = RowCollector("read_swag", path, ("prompts", "choices", "labels"), on_error=on_error)
    for line, row, not_readable in _rows(path):
        endings = sorted((name for name in row if ENDING.fullmatch(name)), key=lambda name: int(name[6:]))
        problem = not_readable or _problem(row, endings)
        if problem:
            collector.leave_out(f"line {line}", problem)
        else:
            choices = [f"{row['sent2']} {row[ending]}" if row["sent2"].strip() else row[ending] for ending in endings]
            collector.keep(row["sent1"], choices, int(row["label"]))
    return collector.columns()


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yields line, named cells, and what is wrong with the row, or `""`."""
    lines = ((line, text) for line, text in numbered_lines(path) if text.strip())
    if next(lines, (0, ""))[1].lstrip().startswith("{"):
        for line, text in numbered_lines(path):
            if text.strip():
                yield line, *json_object(text)
        return
    rows = csv_rows(path, ",")
    line, header, problem = next(rows, (1, [], ""))
    if problem := problem or _missing(header):
        raise ValueError(f"{path}, line {line}: {problem}")
    for line, cells, problem in rows:
        row = dict(zip(header, cells, strict=False))
        yield line, row, problem or wrong_number(header, cells)


def _missing(names: Iterable[str]) -> str:
    missing = [name for name in REQUIRED if name not in names]
    return f"no {', '.join(missing)}. The columns are {list(names)}." if missing else ""


def _problem(row: dict[str, Any], endings: list[str]) -> str:
    """Why a row cannot be used, or `""`."""
    if missing := _missing(row):
        return missing
    if [int(name[6:]) for name in endings] != list(range(len(endings))):
        return f"the endings are not numbered one after the other: {endings}."
    for name in ("sent1", "sent2", *endings):
        if not isinstance(row[name], str) or (name != "sent2" and not row[name].strip()):
            return f"{name!r} must be a text that is not empty. Received: {row[name]!r}."
    return label_problem(row["label"], len(endings))
