"""Collects rows into columns, and handles the rows that cannot be used."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.data.columns import Columns


class RowError(ValueError):
    """A row cannot be used; the message states the problem and the cure, without file and line."""


class RowCollector:
    """Collects rows into columns; a row that cannot be used raises an error, or is left out and counted.

    Args:
        owner: the reader, for errors.
        path: the file, for errors.
        names: the names of the columns.
        on_error: `"raise"` or `"skip"`.

    Raises:
        ValueError: `on_error` has another value.
    """

    def __init__(self, owner: str, path: Path, names: tuple[str, ...], *, on_error: str):
        self._skips = checks.one_of(owner, "on_error", on_error, ["raise", "skip"]) == "skip"
        self._owner = owner
        self._path = path
        self._names = names
        self._rows: list[tuple[Any, ...]] = []
        self._skipped: list[str] = []

    def keep(self, *values: Any) -> None:
        """Adds a row, one value per column."""
        self._rows.append(values)

    def leave_out(self, position: str, problem: RowError) -> None:
        """Counts a row that cannot be used, or raises its error.

        Args:
            position: where the row is in the file, e.g. `"line 3"`.
            problem: what is wrong with it.
        """
        message = f"{self._path}, {position}: {problem}"
        if not self._skips:
            raise ValueError(f'{message} With on_error="skip" such rows are left out.') from problem
        self._skipped.append(message)

    def columns(self, if_empty: str) -> Columns:
        """The rows that were kept, as columns; one warning reports all rows that were left out.

        Args:
            if_empty: the error for a file without rows.

        Raises:
            ValueError: no row was kept.
        """
        first = f"The first: {self._skipped[0]}" if self._skipped else ""
        if not self._rows:
            none_usable = f"none of the {len(self._skipped)} rows can be used. {first}"
            raise ValueError(f"{self._path}: {none_usable if first else if_empty}")
        if first:
            message = f"`{self._owner}`: left out {len(self._skipped)} rows that cannot be used. {first}"
            warnings.warn(message, UserWarning, stacklevel=3)  # the line that called the reader
        return Columns(self._names, map(list, zip(*self._rows, strict=True)), skipped=self._skipped)
