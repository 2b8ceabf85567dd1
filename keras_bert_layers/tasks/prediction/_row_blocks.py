"""Cuts a stream of rows into blocks that fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Rows
from keras_bert_layers.tasks.feeding.columns import is_dataset


def is_stream(x: Rows) -> bool:
    """Whether `x` gives its rows one by one, such as a generator, and not as columns or batches."""
    is_column = hasattr(x, "shape") or hasattr(x, "to_numpy") or isinstance(x, Sequence | Mapping | Set)
    return isinstance(x, Iterable) and not is_column and not is_dataset(x)


def rows_of_columns(columns: Any) -> Iterator[Any]:
    """The rows of a column, or tuples of the rows of several."""
    if isinstance(columns, tuple):
        return zip(*map(rows_of_columns, columns), strict=True)
    if hasattr(columns, "to_list"):
        return iter(columns.to_list())  # a ragged tensor
    return iter(columns.numpy() if tf.is_tensor(columns) else columns)


def blocks(owner: str, rows: Iterable[Any], *, max_rows: int, max_characters: int) -> Iterator[tuple[int, list[Any]]]:
    """Cuts rows into blocks, in order.

    Args:
        owner: the class that asks, for errors.
        rows: texts, lists of words, or tuples of these.
        max_rows: the most rows per block.
        max_characters: the most characters per block, unless one row alone has more.

    Yields:
        The index of the first row, and the rows: at most `max_rows` and `max_characters` together.

    Raises:
        TypeError: a row of another type; the message names it.
        ValueError: a row with another number of texts than the first; the message names it.
    """
    block: list[Any] = []
    start, size = 0, 0
    num_texts = None
    for number, row in enumerate(rows):
        if type(row) is str and not num_texts:  # most rows, and small encoders are as quick as this loop
            num_texts, row_size = 0, len(row)
        else:
            num_texts = _checked(owner, row, number, num_texts)
            row_size = num_characters(row)
        if block and size + row_size > max_characters:
            yield start, block
            start, block, size = number, [], 0
        block.append(row)
        size += row_size
        if len(block) == max_rows:
            yield start, block
            start, block, size = number + 1, [], 0
    if block:
        yield start, block


def as_columns(rows: list[Any]) -> Any:
    """The rows of a block in the form that a user gives them: a list, or a tuple of lists."""
    return tuple(map(list, zip(*rows, strict=True))) if isinstance(rows[0], tuple) else rows


def _checked(owner: str, row: object, number: int, expected: int | None) -> int:
    """The number of texts in a row that is a tuple; 0 for a single text."""
    if not isinstance(row, str | bytes | tuple | list | np.ndarray):
        cure = "Missing values must be removed or replaced first; of a dictionary, give the text."
        raise TypeError(f"`{owner}`: texts must be strings. Received: {row!r} in row {number}. {cure}")
    found = len(row) if isinstance(row, tuple) else 0
    if expected not in (None, found):
        raise ValueError(
            f"`{owner}`: every row must have as many texts as the first. "
            f"Received: {found or 'one text'} in row {number}, and {expected or 'one text'} in row 0."
        )
    return found


def num_characters(row: Any) -> int:
    """The size of a text, or of all texts of a row; 0 for other types."""
    if isinstance(row, tuple | list | np.ndarray):
        return sum(map(num_characters, row))
    return len(row) if isinstance(row, str | bytes) else 0  # a wrong type is reported with its row later
