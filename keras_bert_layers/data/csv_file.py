"""Texts and labels from a CSV file with named columns."""

from __future__ import annotations

import csv
from os import PathLike
from pathlib import Path

from keras_bert_layers._internal import checks


def read_csv(
    path: str | PathLike[str], *columns: str, delimiter: str = ",", where: dict[str, str] | None = None
) -> tuple[list[str], ...]:
    """Reads named columns; a row that cannot be used is an error that names file and line.

    Args:
        path: a UTF-8 file, a byte order mark allowed, whose first row names the columns. Blank lines are skipped, as
            `csv.DictReader` does.
        *columns: the columns to read, in the order in which they are returned.
        delimiter: what stands between two columns, one character.
        where: column -> value; rows that hold another value are left out.

    Returns:
        One list of strings a column.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no columns asked for; a column that the file does not have; a row with too few or too many cells or
            an empty one; bytes that are not UTF-8; a quote that is never closed; no rows at all.

    Examples:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "reviews.csv"
        >>> with path.open("w") as file:
        ...     csv.writer(file).writerows([["review", "stars"], ["Good, really.", "5"]])
        >>> read_csv(path, "review", "stars")
        (['Good, really.'], ['5'])

    References:
        RFC 4180; Python's `csv` module in strict mode.
    """
    path = Path(path)
    where = where or {}
    if not columns:
        raise ValueError(checks.message("read_csv", "columns", "name at least one column", columns))
    values: list[list[str]] = [[] for _ in columns]
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            header = _checked_header(path, next(reader, None), (*columns, *where))
            for cells in reader:
                if not cells:
                    continue
                row = dict(zip(header, cells, strict=False))
                _check_row(path, reader.line_num, header, cells)
                if any(row[column] != value for column, value in where.items()):
                    continue
                for kept, column in zip(values, columns, strict=True):
                    if not row[column].strip():
                        raise ValueError(
                            f"{path}, line {reader.line_num}: column {column!r} is empty. Fill or remove the row."
                        )
                    kept.append(row[column])
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}. Check the quotes of this row.") from error
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}, after line {reader.line_num}: byte 0x{error.object[error.start]:02x} is not UTF-8. "
                "Save the file as UTF-8."
            ) from error
    if not values[0]:
        raise ValueError(f"{path}: no row to read below the header" + (f" where {where}." if where else "."))
    return tuple(values)


def _checked_header(path: Path, header: list[str] | None, columns: tuple[str, ...]) -> list[str]:
    """The names of the columns, each of those asked for among them once."""
    if header is None:
        raise ValueError(f"{path}: the file is empty. Its first row must name the columns.")
    for column in columns:
        if header.count(column) != 1:
            found = "no column" if column not in header else f"{header.count(column)} columns"
            raise ValueError(f"{path}, line 1: {found} named {column!r}. The columns are {header}.")
    return header


def _check_row(path: Path, line: int, header: list[str], cells: list[str]) -> None:
    if len(cells) != len(header):
        raise ValueError(
            f"{path}, line {line}: {len(cells)} cells where the header names {len(header)} columns. "
            "A text that holds the delimiter or a line break must stand in double quotes."
        )
