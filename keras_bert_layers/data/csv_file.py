"""Texts and labels from a CSV file with named columns."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers.data._csv_rows import csv_rows, wrong_number
from keras_bert_layers.data._row_collector import RowCollector
from keras_bert_layers.data.columns import Columns


def read_csv(
    path: str | PathLike[str],
    *columns: str,
    delimiter: str = ",",
    where: dict[str, str] | None = None,
    on_error: str = "raise",
) -> Columns:
    """Reads named columns; a row that cannot be used is an error that names file and line, or is left out.

    Args:
        path: a UTF-8 file, plain or gzip, a byte order mark allowed, whose first row names the columns. Blank lines are
            skipped, as `csv.DictReader` does. A cell may be of any length.
        *columns: the columns to read, in the order in which they are returned.
        delimiter: what stands between two columns, one character.
        where: column -> value; rows that hold another value are left out, and not counted.
        on_error: what to do with a row that has too few or too many cells, an empty one among those asked for, wrong
            quotes, or bytes that are not UTF-8. `"raise"`, or `"skip"`: leave it out, count it, and warn once.

    Returns:
        One list of strings a column, named as in the file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no columns asked for; a column that the file does not have; a row that cannot be used, under
            `"raise"`; a quote that is never closed; no rows at all.

    Examples:
        >>> import csv, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "reviews.csv"
        >>> with path.open("w") as file:
        ...     csv.writer(file).writerows([["review", "stars"], ["Good, really.", "5"]])
        >>> texts, stars = read_csv(path, "review", "stars")
        >>> texts, stars
        (['Good, really.'], ['5'])

    References:
        RFC 4180; Python's `csv` module in strict mode.
    """
    path = Path(path)
    where = where or {}
    if not columns:
        raise ValueError(checks.message("read_csv", "columns", "name at least one column", columns))
    collector = RowCollector("read_csv", path, columns, on_error=on_error)
    rows = csv_rows(path, delimiter)
    header = _checked_header(path, next(rows, None), (*columns, *where))
    for line, cells, not_readable in rows:
        problem = not_readable or wrong_number(header, cells)
        row = dict(zip(header, cells, strict=False))
        if not problem and any(row[column] != value for column, value in where.items()):
            continue
        problem = problem or next((_empty(column) for column in columns if not row[column].strip()), "")
        if problem:
            collector.leave_out(f"line {line}", problem)
        else:
            collector.keep(*(row[column] for column in columns))
    return collector.columns("no row to read below the header" + (f" where {where}." if where else "."))


def _checked_header(path: Path, row: tuple[int, list[str], str] | None, columns: tuple[str, ...]) -> list[str]:
    """The names of the columns, each of those asked for among them once."""
    if row is None:
        raise ValueError(f"{path}: the file is empty. Its first row must name the columns.")
    line, header, problem = row
    if problem:
        raise ValueError(f"{path}, line {line}: {problem}")
    for column in columns:
        if header.count(column) != 1:
            found = "no column" if column not in header else f"{header.count(column)} columns"
            raise ValueError(f"{path}, line {line}: {found} named {column!r}. The columns are {header}.")
    return header


def _empty(column: str) -> str:
    return f"column {column!r} is empty. Fill or remove the row."
