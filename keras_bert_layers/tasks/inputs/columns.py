"""From what a user hands to `fit`, `evaluate` and `predict` to checked columns of raw text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf


def as_tensor(values: Any) -> Any:
    """A column as a tensor; None and ragged tensors unchanged."""
    return values if values is None or is_ragged(values) else tf.convert_to_tensor(values)


def rows_of(columns: Any, rows: tf.Tensor) -> Any:
    """The chosen rows of each column, in graph; None stays None."""
    return tf.nest.map_structure(lambda column: None if column is None else tf.gather(column, rows), columns)


def on_host(function: Callable[[Any], Any], texts: Any) -> Any:
    """`function(texts)` on the CPU; on an accelerator, integers between string ops would travel there and back."""
    with tf.device("CPU:0"):
        return function(texts)


def stacked(parts: Sequence[np.ndarray], fill: float | bytes) -> np.ndarray:
    """Arrays concatenated along their first axis, with `fill` where one is narrower than another on any axis."""
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) == 1:
        return np.concatenate(parts) if len(parts) > 1 else parts[0]
    shape = np.max(list(shapes), axis=0)
    found = np.full((sum(map(len, parts)), *shape), fill, parts[0].dtype)
    start = 0
    for part in parts:
        found[(slice(start, start + len(part)), *map(slice, part.shape[1:]))] = part
        start += len(part)
    return found


def is_dataset(x: Any) -> bool:
    """Whether `x` is a `tf.data.Dataset`; TensorFlow is not imported for what cannot be one."""
    return _is_of_tensorflow(x) and isinstance(x, tf.data.Dataset)


def is_ragged(x: Any) -> bool:
    """Whether `x` is a `tf.RaggedTensor`."""
    return _is_of_tensorflow(x) and isinstance(x, tf.RaggedTensor)


def _is_of_tensorflow(x: Any) -> bool:
    return type(x).__module__.startswith("tensorflow.")


def has_key(x: Any, key: str) -> bool:
    """Whether `x` is, or yields, a dictionary with that key: the model's own inputs."""
    x = first_part(x)
    return isinstance(x, dict) and key in x


def is_pair(x: Any) -> bool:
    """Whether `x` is, or yields, a tuple of columns and not a single one."""
    return isinstance(first_part(x), tuple)


def holds_text(x: Any) -> bool:
    """Whether `x` is, or yields, strings: bare, in lists, arrays and tensors, or in tuples of these."""
    x = first_part(x)
    if isinstance(x, list | tuple):
        return len(x) > 0 and holds_text(x[0])
    dtype = getattr(x, "dtype", None)
    return isinstance(x, str | bytes) or getattr(dtype, "kind", "") in tuple("SUOT") or "string" in str(dtype)


def first_part(x: Any) -> Any:
    """What a dataset or a `PyDataset` yields as its inputs; anything else unchanged."""
    if isinstance(x, keras.utils.PyDataset):
        return keras.utils.unpack_x_y_sample_weight(x[0])[0]
    if not is_dataset(x):
        return x
    element = x.element_spec
    return element[0] if isinstance(element, tuple) else element


def check_dataset(owner: str, dataset: Any, *, most: int = 2) -> None:
    """Refuses a dataset that does not yield batches of text; ValueError.

    Args:
        owner: the class that asks, for errors.
        dataset: a `tf.data.Dataset`.
        most: the most columns of text a row may have; those after the second may hold several texts a row.
    """
    text = first_part(dataset)
    sides = text if isinstance(text, tuple) else (text,)
    if len(sides) > most or not all(isinstance(side, tf.TensorSpec) and side.dtype == tf.string for side in sides):
        cure = "For dictionaries: `dataset.map(lambda row: (row['text'], row['label']))`."
    elif any(side.shape.rank != 1 for side in sides[:2]) or any(side.shape.rank not in (1, 2) for side in sides[2:]):
        cure = "Call `dataset.batch(32)` first, if it yields single texts."
    else:
        return
    rule = (
        "yield `text`, `(text, y)` or `(text, y, sample_weight)`, the text a string tensor `(batch,)` or a tuple of "
        + ("two" if most == 2 else f"two to {most}")
    )
    raise ValueError(checks.message(owner, "x", rule, dataset.element_spec, cure))


def refuse_beside_dataset(owner: str, *, batch_size: int | None, **columns: Any) -> None:
    """Refuses arguments that a dataset itself must hold; ValueError unless all of them are None."""
    for name, value in columns.items():
        if value is not None:
            cure = "The dataset itself must yield `(text, y)` or `(text, y, sample_weight)`."
            raise ValueError(checks.message(owner, name, "be None where `x` is a dataset", type(value), cure))
    if batch_size is not None:
        cure = "Batch the dataset itself: `dataset.batch(batch_size)`."
        raise ValueError(checks.message(owner, "batch_size", "be None where `x` is a dataset", batch_size, cure))


def as_array(values: Any) -> Any:
    """One column in a form that can be sliced: a NumPy array, or the tensor that it is."""
    if hasattr(values, "to_numpy"):  # pandas and polars columns
        values = values.to_numpy()
    if hasattr(values, "shape") and not isinstance(values, np.ndarray):
        return values
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths, such as the labels of texts that have several
        return np.fromiter(values, object)
    if array.dtype.kind == "O":  # numbers in a column of objects, as pandas has them after a missing value was filled
        array = np.asarray(array.tolist()) if array.size and not _holds_strings_or_lists(array) else array
    return array.astype(object) if array.dtype.kind in "UT" else array


def _holds_strings_or_lists(array: np.ndarray) -> bool:
    return any(isinstance(value, str | bytes | list | tuple | np.ndarray) for value in array.flat)


def as_columns(owner: str, x: Any, *, most: int = 2, first_row: int = 0) -> Any:
    """Texts as one array `(rows,)`, or a tuple of 2 to `most` arrays.

    Args:
        owner: the class that asks, for errors.
        x: a column of texts, or a tuple of columns; those after the second may hold several texts a row.
        most: the most columns there may be.
        first_row: the index of the first row, for errors.

    Returns:
        An array, or a tuple of arrays; those after the second are `(rows, texts)`, as `as_table` makes them.

    Raises:
        TypeError: text that is not strings (the message names the first such row), or not in columns.
        ValueError: one bare string, or a pair whose sides have different lengths.
    """
    if not isinstance(x, tuple):
        return _as_column(owner, x, first_row)
    if most == 1:
        raise ValueError(checks.message(owner, "x", "be single texts", "a tuple"))
    if not 2 <= len(x) <= most or any(isinstance(side, str | bytes) for side in x):
        sizes = "two" if most == 2 else f"two to {most}"
        strings = ", with strings where lists must be" if any(isinstance(side, str | bytes) for side in x) else ""
        raise ValueError(
            f"`{owner}`: a pair of texts must be a tuple of {sizes} lists. Received: a tuple of {len(x)}{strings}. "
            "A batch of single texts is a list."
        )
    sides = (
        *(_as_column(owner, side, first_row) for side in x[:2]),
        *(as_table(owner, side, first_row=first_row) for side in x[2:]),
    )
    lengths = [len(side) for side in sides]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"`{owner}`: both sides of a pair must have the same number of texts. "
            f"Received: {' and '.join(map(str, lengths))}."
        )
    return sides


def _as_column(owner: str, x: Any, first_row: int) -> Any:
    """One column of texts, checked row by row."""
    if isinstance(x, str | bytes):
        raise ValueError(f"`{owner}`: texts must be a list. Received: one string, {x!r}. Write [text].")
    if is_ragged(x):
        cure = "Join the words of each row with spaces: `tf.strings.reduce_join(x, axis=1, separator=' ')`."
        raise TypeError(checks.message(owner, "x", "hold one text a row", f"a RaggedTensor {x.shape}", cure))
    if not isinstance(x, Sequence) and not hasattr(x, "shape") and not hasattr(x, "to_numpy"):
        rule = "be a list, array, tensor or pandas column of strings, a tuple of two of them, or a `tf.data.Dataset`"
        cure = (
            "Take a column out of a dictionary. A generator gives batches `(x, y)` to `fit`, and rows to `predict`, of "
            "pairs `zip(first, second)`."
        )
        raise TypeError(checks.message(owner, "x", rule, type(x), cure))
    column = _as_texts(x)
    if isinstance(column, np.ndarray) and column.dtype.kind not in "SO" and column.size:
        raise TypeError(f"`{owner}`: texts must be strings. Received: an array of dtype {column.dtype}.")
    if column.ndim != 1:
        raise ValueError(
            f"`{owner}`: texts must be one column `(rows,)`. Received: shape={tuple(column.shape)}. "
            "Pairs are a tuple of two columns."
        )
    if isinstance(column, np.ndarray):
        for row, text in enumerate(column, start=first_row):
            if not isinstance(text, str | bytes):
                raise TypeError(
                    f"`{owner}`: texts must be strings. Received: {text!r} in row {row}. "
                    "Missing values must be removed or replaced first."
                )
        column = column.astype(object)
    return column


def _as_texts(x: Any) -> Any:
    """As `as_array`, but strings of a list stay objects: NumPy would pad each one to the length of the longest."""
    if not isinstance(x, list | tuple) or not x or not isinstance(x[0], str | bytes):
        return as_array(x)
    return np.fromiter(x, object)


def as_table(owner: str, x: Any, *, first_row: int = 0) -> np.ndarray:
    """One or several texts a row as an array of objects `(rows, texts)`, short rows padded with empty strings.

    Args:
        owner: the class that asks, for errors.
        x: a column of texts or of lists of texts, or an array or tensor `(rows, texts)`.
        first_row: the index of the first row, for errors.

    Raises:
        TypeError: a row that holds anything but strings; the message names it.
    """
    if isinstance(x, str | bytes) or not (isinstance(x, Sequence) or hasattr(x, "shape")):
        rule = "be a column of texts, or of lists of texts"
        raise TypeError(checks.message(owner, "x[2]", rule, type(x)))
    rows = [[row] if isinstance(row, str | bytes) else row for row in (x.numpy() if hasattr(x, "numpy") else x)]
    for index, row in enumerate(rows, start=first_row):
        if not hasattr(row, "__iter__") or not all(isinstance(text, str | bytes) for text in row):
            raise TypeError(f"`{owner}`: texts must be strings. Received: {row!r} in row {index}.")
    table = np.full((len(rows), max([1, *map(len, rows)])), "", object)
    for padded, row in zip(table, rows, strict=True):
        padded[: len(row)] = list(row)
    return table


def as_one_column(columns: Any) -> Any:
    """All texts of all columns, those of the first rows first."""
    if not isinstance(columns, tuple):
        return columns
    table = np.concatenate([np.asarray(column).reshape(len(column), -1) for column in columns], axis=1)
    return table.reshape(-1)


def num_rows(columns: Any) -> int:
    """How many rows there are, dense or ragged."""
    column, *_ = tf.nest.flatten(columns) if isinstance(columns, tuple | dict) else [columns]
    return int(column.nrows()) if hasattr(column, "nrows") else len(column)


def split_rows(owner: str, share: float, *columns: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Cuts columns into their first rows and the `share` of rows at their end; a column of None stays None.

    Raises:
        TypeError, ValueError: a share that is not in [0, 1), or that leaves no row to train on.
    """
    share = checks.fraction(owner, "validation_split", share)
    rows = num_rows(columns[0])
    first = int(rows * (1 - share))
    if first == 0:
        raise ValueError(checks.message(owner, "validation_split", f"leave a row of {rows} to train on", share))
    return tuple(_cut(column, slice(first)) for column in columns), tuple(
        _cut(column, slice(first, None)) for column in columns
    )


def _cut(column: Any, rows: slice) -> Any:
    if isinstance(column, tuple):
        return tuple(_cut(side, rows) for side in column)
    if isinstance(column, dict):
        return {name: _cut(side, rows) for name, side in column.items()}
    return None if column is None else column[rows]
