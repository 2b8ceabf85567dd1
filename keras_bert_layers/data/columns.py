"""What every reader gives back."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from typing import Any


class Columns(tuple[list[Any], ...]):
    """The columns of a file, one list each: a tuple that also knows their names and what was left out.

    It unpacks, counts and compares as a tuple of lists does. A column is also an attribute, and an item under its name:
    `columns.texts` and `columns["texts"]` are the same list. A column whose name a tuple or this class already uses,
    such as `"count"` or `"skipped"`, or that is no Python name, is an item only.

    Args:
        names: one name a column.
        values: one list a column, all of the same length.
        skipped: one message for each row that was left out.

    Attributes:
        names: the names, a tuple of strings.
        skipped: one message for each row that was left out, naming file and place; a tuple of strings.

    Raises:
        AttributeError, KeyError: no column of that name; the names are in the message.

    Examples:
        >>> columns = Columns(["texts", "labels"], [["good", "bad"], [1, 0]])
        >>> texts, labels = columns
        >>> columns.labels, columns["texts"], len(columns), columns.num_rows
        ([1, 0], ['good', 'bad'], 2, 2)
        >>> columns
        Columns(texts=['good', 'bad'], labels=[1, 0])
    """

    names: tuple[str, ...]
    skipped: tuple[str, ...]

    def __new__(cls, names: Sequence[str], values: Iterable[list[Any]], *, skipped: Iterable[str] = ()) -> Columns:
        """A tuple takes its parts here, not in `__init__`."""
        columns = super().__new__(cls, values)
        columns.names = tuple(names)
        columns.skipped = tuple(skipped)
        return columns

    @property
    def num_rows(self) -> int:
        """How many rows there are; `len` is the number of columns."""
        return len(self[0]) if self else 0

    @property
    def num_skipped(self) -> int:
        """How many rows were left out."""
        return len(self.skipped)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            raise KeyError(f"no column named {key!r}. The columns are {list(self.names)}.")
        return super().__getitem__(self.names.index(key))

    def __getattr__(self, name: str) -> list[Any]:
        names = self.__dict__.get("names", ())
        if name not in names:
            raise AttributeError(f"no column named {name!r}. The columns are {list(names)}.")
        return self[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in self.names if name.isidentifier())})

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.names, tuple(self), self.skipped)

    def __repr__(self) -> str:
        shorten = reprlib.Repr()
        shorten.maxstring = shorten.maxother = 60
        parts = [f"{name}={shorten.repr(values)}" for name, values in zip(self.names, self, strict=True)]
        return f"Columns({', '.join(parts)})"


def _again(names: Sequence[str], values: Iterable[list[Any]], skipped: Iterable[str]) -> Columns:
    """A copied or unpickled instance; pickle gives positional arguments only."""
    return Columns(names, values, skipped=skipped)
