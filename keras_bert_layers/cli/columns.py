"""Columns beside a text in a table: how a model reads them, and the values of their cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_MOST_CATEGORIES = 100
NUMBERS, CATEGORIES = "float_normalized", "string_categorical"


def text_of(cell: Any) -> str:
    """A cell without the spaces around it; `""` if it is missing."""
    return "" if cell is None else str(cell).strip()


def column_value(cell: Any, name: str, dtype: str, position: str = "", *, owner: str) -> Any:
    """The value of a cell, as a model takes it.

    Args:
        cell: what a file holds: a string, or a value of JSON.
        name: the column, for errors.
        dtype: `"string"`, or that of numbers.
        position: where the cell is, for errors.
        owner: the command, for errors.

    Returns:
        A string or a number; for a missing cell, `""`, NaN, or -1 of integers.

    Raises:
        ValueError: the cell is no such value.

    Examples:
        >>> column_value(" us ", "country", "string", owner="train"), column_value("", "age", "float32", owner="train")
        ('us', nan)
    """
    text, is_whole = text_of(cell), dtype.startswith("int")
    if dtype == "string" and not isinstance(cell, list | dict):
        return text
    try:
        number = float(cell) if text else math.nan
        if math.isinf(number) or (is_whole and number % 1 > 0):
            raise ValueError("no number of this dtype")
    except (TypeError, ValueError) as error:
        kind = "strings" if dtype == "string" else "whole numbers" if is_whole else "numbers"
        raise ValueError(f"`{owner}`: column {name!r}{position} must hold {kind}. Received: {cell!r}.") from error
    return (-1 if math.isnan(number) else int(number)) if is_whole else number


def column_kind(name: str, cells: Sequence[Any], *, owner: str) -> str:
    """How a `FeatureSpace` is to read a column: numbers are normalized, and anything else is a category.

    Args:
        name: the column, for errors.
        cells: strings, or values of JSON; missing ones are empty or None.
        owner: the command, for errors.

    Returns:
        `NUMBERS` or `CATEGORIES`.

    Raises:
        ValueError: no cell has a value, or there are so many different ones that they are texts or ids.

    Examples:
        >>> column_kind("age", ["31", "", "7.5"], owner="train"), column_kind("country", ["us", "7"], owner="train")
        ('float_normalized', 'string_categorical')
    """
    known = [text for text in map(text_of, cells) if text]
    if not known:
        raise ValueError(f"`{owner}`: --columns: {name!r} has no value in any row. Leave it out.")
    others = [text for text in known if not _is_number(text)]
    if not others:
        return NUMBERS
    if (number := len(set(known))) > max(_MOST_CATEGORIES, len(cells) // 2):
        rule = f"--columns: {name!r} has {number:,} different values in {len(cells):,} rows, too many for categories"
        cure = f"Leave out texts and ids; in a column of numbers, empty or correct cells such as {others[0][:40]!r}."
        raise ValueError(f"`{owner}`: {rule}. {cure}")
    return CATEGORIES


def useful_kind(name: str, cells: Sequence[Any]) -> str | None:
    """The kind of a column that may tell something beside a text, of several values and no ids; None of any other.

    Examples:
        >>> useful_kind("id", [1, 2, 3]), useful_kind("price", [1.5, 2, 3])
        (None, 'float_normalized')
    """
    try:
        kind = column_kind(name, cells, owner="")
    except ValueError:
        return None
    values = {text for text in map(text_of, cells) if text}
    may_be_ids = kind == CATEGORIES or all(float(text) % 1 == 0 for text in values)
    return None if len(values) < 2 or (may_be_ids and len(values) == len(cells)) else kind


def _is_number(text: str) -> bool:
    try:
        return not math.isinf(float(text))
    except ValueError:
        return False
