"""What becomes of rows that can be used, and of those that cannot."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.data.columns import Columns

READER_CALLER = 3  # as seen from `columns`: the line in which the user called the reader


class RowCollector:
    """Gathers rows into columns; a row that cannot be used is an error, or is left out and counted.

    Args:
        owner: the reader, for errors.
        path: the file, for errors.
        names: the names of the columns.
        on_error: `"raise"` or `"skip"`.

    Raises:
        ValueError: another `on_error`.
    """

    def __init__(self, owner: str, path: Path, names: tuple[str, ...], *, on_error: str):
        self._skips = checks.one_of(owner, "on_error", on_error, ["raise", "skip"]) == "skip"
        self._owner = owner
        self._path = path
        self._names = names
        self._values: list[list[Any]] = [[] for _ in names]
        self._skipped: list[str] = []

    def keep(self, *values: Any) -> None:
        """Adds a row, one value a column."""
        for column, value in zip(self._values, values, strict=True):
            column.append(value)

    def leave_out(self, place: str, problem: str) -> None:
        """Counts a row that cannot be used, or raises its error.

        Args:
            place: the row, e.g. `"line 3"`.
            problem: what is wrong and what helps, in sentences.
        """
        message = f"{self._path}, {place}: {problem}"
        if not self._skips:
            raise ValueError(f'{message} With on_error="skip" such rows are left out.')
        self._skipped.append(message)

    def columns(self, nothing: str = "no row to read.") -> Columns:
        """The rows that were kept; tells by one warning of those that were not.

        Args:
            nothing: what to say of a file without rows.

        Raises:
            ValueError: no row was kept.
        """
        first = f"The first: {self._skipped[0]}" if self._skipped else ""
        if not self._values[0]:
            every = f"not one of {len(self._skipped)} rows can be used. {first}"
            raise ValueError(f"{self._path}: {every if first else nothing}")
        if first:
            warnings.warn(
                f"`{self._owner}`: left out {len(self._skipped)} rows that cannot be used. {first}",
                UserWarning,
                stacklevel=READER_CALLER,
            )
        return Columns(self._names, self._values, skipped=self._skipped)
