"""The rows of a CSV file with their lines, whatever the length of a cell."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from keras_bert_layers.data._text_file import not_utf8, open_text

LONGEST_CELL = 2**31 - 1


def _csv_without_limit() -> ModuleType:
    """A copy of the parser of `csv`, whose cells may be long.

    `csv.field_size_limit` is one number for all users of the module `_csv`, 131,072 characters at first; a copy of the
    module has a number of its own.
    """
    spec = importlib.util.find_spec("_csv")
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("`read_csv` needs CPython's own module `_csv`, which is not there.", name="_csv")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.field_size_limit(LONGEST_CELL)
    return module


def csv_rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str], str]]:
    """Yields `(line, cells, problem)`: the row's first line, and what is wrong with it, or `""`; no blank lines.

    Raises:
        ValueError: a quote that is never closed, as it takes the rest of the file with it.
    """
    parser = _csv_without_limit()
    with open_text(path, newline="") as file:
        reader = parser.reader(file, csv.excel, delimiter=delimiter, strict=True)
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except parser.Error as error:
                if str(error) == "unexpected end of data":
                    raise ValueError(
                        f"{path}, line {line}: unexpected end of data, as a quote in this row is never closed."
                    ) from error
                yield line, [], f"{error}. Check the quotes of this row."
                continue
            if cells:
                yield line, cells, not_utf8(*cells)


def wrong_number(header: list[str], cells: list[str]) -> str:
    """What is wrong with a row of more or fewer cells than the header has, or `""`."""
    if len(cells) == len(header):
        return ""
    return (
        f"{len(cells)} cells where the header names {len(header)} columns. "
        "A text that holds the delimiter or a line break must stand in double quotes."
    )
