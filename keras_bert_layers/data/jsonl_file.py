"""Columns from a file with one JSON object a line."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.data._row_collector import RowCollector
from keras_bert_layers.data._text_file import not_utf8, numbered_lines
from keras_bert_layers.data.columns import Columns


def read_jsonl(path: str | PathLike[str], *columns: str, on_error: str = "raise") -> Columns:
    r"""Reads the named keys of every line's object; a line that cannot be used names file and line, or is left out.

    Args:
        path: a UTF-8 file, plain or gzip, a byte order mark allowed. Blank lines are skipped.
        *columns: the keys to read, in the order in which they are returned. Other keys are not looked at.
        on_error: what to do with a line that is not a JSON object, lacks one of the keys, or holds bytes that are not
            UTF-8. `"raise"`, or `"skip"`: leave it out, count it, and warn once.

    Returns:
        One list a column, with the values as JSON has them: strings, numbers, lists, also `""` and None.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no columns asked for; a line that cannot be used, under `"raise"`; no lines at all.

    Examples:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.jsonl"
        >>> _ = path.write_text('{"pair": ["a cat", "a dog"], "score": 0.5}\n')
        >>> read_jsonl(path, "score", "pair")
        Columns(score=[0.5], pair=[['a cat', 'a dog']])

    References:
        RFC 8259.
    """
    path = Path(path)
    if not columns:
        raise ValueError(checks.message("read_jsonl", "columns", "name at least one column", columns))
    collector = RowCollector("read_jsonl", path, columns, on_error=on_error)
    for line, text in numbered_lines(path):
        if not text.strip():
            continue
        row, problem = json_object(text)
        problem = problem or next((_missing(column, row) for column in columns if column not in row), "")
        if problem:
            collector.leave_out(f"line {line}", problem)
        else:
            collector.keep(*(row[column] for column in columns))
    return collector.columns()


def json_object(text: str) -> tuple[dict[str, Any], str]:
    """The object in one line, and what is wrong with it, or `""`."""
    if problem := not_utf8(text):
        return {}, problem
    try:
        row = json.loads(text)
        # An escape can name half of a character, which the line itself does not show.
        problem = not_utf8(json.dumps(row, ensure_ascii=False)) if "\\u" in text else ""
    except (ValueError, RecursionError) as error:
        return {}, f"not JSON: {error}. Every line must hold one object, {{...}}."
    if not isinstance(row, dict):
        return {}, f"a {type(row).__name__} where an object must stand. Every line must hold one object, {{...}}."
    return row, problem


def _missing(column: str, row: dict[str, Any]) -> str:
    return f"no key {column!r}. The keys are {list(row)}."
