"""Reads columns of a CSV file with pandas: python3 -m pip install pandas."""

from __future__ import annotations

from pathlib import Path


def read_columns(path: Path, *names: str) -> list[list[str]]:
    """Named columns of a CSV file with a header, as lists of strings; an empty cell raises a ValueError."""
    import pandas as pd

    # All columns: with `usecols` pandas ignores surplus cells, which come from a text with a comma and without quotes.
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    for name in names:
        if name not in table:
            raise ValueError(f"{path}: no column named {name!r}. The columns are {list(table)}.")
        empty = table[name].str.strip() == ""
        if empty.any():
            raise ValueError(f"{path}: row {empty.argmax() + 1} below the header has no {name!r}. Fill or remove it.")
    if table.empty:
        raise ValueError(f"{path}: no row below the header.")
    return [table[name].tolist() for name in names]
