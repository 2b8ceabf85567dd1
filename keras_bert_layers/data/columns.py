"""`Columns`: the named columns of a file, as every reader returns them."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from typing import Any


class Columns(tuple[list[Any], ...]):
    """Named columns of a file: a tuple of lists that also has the columns' names and the rows that were left out.

    It unpacks, counts and compares as a tuple of lists does. A column is also an attribute, and an item under its name:
    `columns.texts` and `columns["texts"]` are the same list. A column is an item only if its name is not a Python name,
    or if a tuple or this class already uses it, such as `"count"` or `"skipped"`.

    `Columns(names, values, skipped=())` takes one name and one list per column, all lists of the same length, and one
    message for each row that was left out.

    Attributes:
        names: the names, a tuple of strings.
        skipped: one message for each row that was left out, with file and line; a tuple of strings.

    Raises:
        AttributeError, KeyError: no column has that name; the message lists the names.

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
        """Takes the parts of the tuple, which `__init__` cannot set."""
        columns = super().__new__(cls, values)
        columns.names = tuple(names)
        columns.skipped = tuple(skipped)
        return columns

    @property
    def num_rows(self) -> int:
        """The number of rows; `len` gives the number of columns."""
        return len(self[0]) if self else 0

    @property
    def num_skipped(self) -> int:
        """The number of rows that were left out."""
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

    def __getnewargs_ex__(self) -> tuple[Any, ...]:
        return (self.names, tuple(self)), {"skipped": self.skipped}

    def __repr__(self) -> str:
        shorten = reprlib.Repr()
        shorten.maxstring = shorten.maxother = 60
        parts = [f"{name}={shorten.repr(values)}" for name, values in zip(self.names, self, strict=True)]
        return f"Columns({', '.join(parts)})"
