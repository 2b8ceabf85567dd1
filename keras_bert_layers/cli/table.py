"""`read_table`: columns of a CSV, TSV or JSON lines file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers.cli.text_rows import JSON_SUFFIXES, suffix_of

_LONGEST_CELL = 2**27  # of Python's reader, whose own limit is 131,072 characters


def read_table(path: Path, names: Sequence[str], *, owner: str) -> list[list[Any]]:
    """The columns with these names.

    Args:
        path: a UTF-8 file, plain or gzip: `.csv`, `.tsv` (separated by tabs), or `.jsonl` with an object on each line.
        names: the columns to read.
        owner: the command, for errors.

    Returns:
        One list a column. Cells of a CSV or TSV file are strings, those of JSON lines are JSON values.

    Raises:
        ValueError: there is no such column, a row lacks a cell, or the file has no row.
        OSError: the file cannot be read.
    """
    suffix = suffix_of(path.name)
    rows = _json_rows(path, owner) if suffix in JSON_SUFFIXES else _csv_rows(path, suffix, owner)
    columns: list[list[Any]] = [[] for _ in names]
    for line, row in rows:
        for name, column in zip(names, columns, strict=True):
            if name not in row:
                found = ", ".join(str(key) for key in row if key is not None)
                cure = " A .csv file has commas between its columns, and a .tsv file tabs." if ";" in found else ""
                raise ValueError(f"`{owner}`: {path} must have a column {name!r}. The columns are: {found}.{cure}")
            if row[name] is None or row[name] == "":
                raise ValueError(f"`{owner}`: {path}, line {line}: column {name!r} is empty. Fill or remove the row.")
            column.append(row[name])
    if names and not columns[0]:
        raise ValueError(f"`{owner}`: {path} must have at least one row.")
    return columns


def _csv_rows(path: Path, suffix: str, owner: str) -> Iterator[tuple[int, dict[str, Any]]]:
    from keras_bert_layers.data._row_collector import RowError
    from keras_bert_layers.data._text_file import check_utf8, open_text

    csv.field_size_limit(_LONGEST_CELL)
    with open_text(path) as file:
        reader = csv.DictReader(file, delimiter="\t" if suffix == ".tsv" else ",")
        try:
            for row in reader:
                if None in row:
                    raise RowError(f"{len(row[None])} cells more than columns. Quote cells that contain the separator.")
                check_utf8("".join(cell for cell in row.values() if cell))
                yield reader.line_num, row
        except (csv.Error, RowError) as error:
            raise ValueError(f"`{owner}`: {path}, line {reader.line_num}: {error}") from error


def _json_rows(path: Path, owner: str) -> Iterator[tuple[int, dict[str, Any]]]:
    from keras_bert_layers.data._text_file import check_utf8, numbered_lines

    for line, text in numbered_lines(path):
        try:
            check_utf8(text)
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"`{owner}`: {path}, line {line} must be JSON: {error}") from error
        if not isinstance(row, dict):
            raise ValueError(f"`{owner}`: {path}, line {line} must be a JSON object. Received: {text[:60]!r}.")
        yield line, row
