"""From what a user hands to `fit`, `evaluate` and `predict` to batches of raw text in a `tf.data.Dataset`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf


def is_dataset(x: Any) -> bool:
    """Whether `x` is a `tf.data.Dataset` (asked without importing TensorFlow for what cannot be one)."""
    return type(x).__module__.startswith("tensorflow.") and isinstance(x, tf.data.Dataset)


def holds_ids(x: Any) -> bool:
    """Whether `x` is, or yields, the backbone's own inputs, which need no preprocessing."""
    x = _first_part(x)
    return isinstance(x, dict) and "token_ids" in x


def is_pair(x: Any) -> bool:
    """Whether `x` is, or yields, pairs of texts rather than single ones."""
    return isinstance(_first_part(x), tuple)


def holds_text(x: Any) -> bool:
    """Whether `x` is, or yields, strings: bare, in lists, arrays and tensors, or in pairs of these."""
    x = _first_part(x)
    if isinstance(x, list | tuple):
        return len(x) > 0 and holds_text(x[0])
    dtype = getattr(x, "dtype", None)
    return isinstance(x, str | bytes) or getattr(dtype, "kind", "") in tuple("SUOT") or "string" in str(dtype)


def _first_part(x: Any) -> Any:
    """What a dataset yields as its inputs; anything else as it is."""
    if not is_dataset(x):
        return x
    element = x.element_spec
    return element[0] if isinstance(element, tuple) else element


def check_dataset(owner: str, dataset: Any, **others: Any) -> None:
    """Refuses a dataset that does not yield batches of text, or that comes with columns of its own.

    Args:
        owner: the class that asks, for errors.
        dataset: a `tf.data.Dataset`.
        **others: what must then be None, such as `y`.

    Raises:
        ValueError: one of the two.
    """
    for name, value in others.items():
        if value is not None:
            cure = "The dataset itself must yield `(text, y)` or `(text, y, sample_weight)`."
            raise ValueError(checks.message(owner, name, "be None where `x` is a dataset", type(value), cure))
    text = _first_part(dataset)
    sides = text if isinstance(text, tuple) else (text,)
    if len(sides) > 2 or not all(isinstance(side, tf.TensorSpec) and side.dtype == tf.string for side in sides):
        cure = "For dictionaries: `dataset.map(lambda row: (row['text'], row['label']))`."
    elif any(side.shape.rank != 1 for side in sides):
        cure = "Call `dataset.batch(32)` first, if it yields single texts."
    else:
        return
    rule = (
        "yield `text`, `(text, y)` or `(text, y, sample_weight)`, the text a string tensor `(batch,)` or a tuple of two"
    )
    raise ValueError(checks.message(owner, "x", rule, dataset.element_spec, cure))


def as_array(values: Any) -> Any:
    """One column as something that can be sliced: a NumPy array, or the tensor that it is."""
    if hasattr(values, "to_numpy"):  # pandas and polars columns
        values = values.to_numpy()
    if hasattr(values, "shape") and not isinstance(values, np.ndarray):
        return values
    array = np.asarray(values)
    if array.dtype.kind == "O":  # numbers in a column of objects, as pandas has them after a missing value was filled
        array = np.asarray(array.tolist()) if array.size and not _holds_strings(array) else array
    return array.astype(object) if array.dtype.kind in "UT" else array


def _holds_strings(array: np.ndarray) -> bool:
    return any(isinstance(value, str | bytes) for value in array.flat)


def as_columns(owner: str, x: Any) -> Any:
    """Texts as one array `(rows,)`, or a pair of them as a tuple of two.

    Raises:
        TypeError: text that is not strings (the message names the first row that is not), or not in columns.
        ValueError: one bare string, or a pair whose sides have different lengths.
    """
    if isinstance(x, tuple):
        if len(x) != 2 or any(isinstance(side, str | bytes) for side in x):
            raise ValueError(
                f"`{owner}`: a pair of texts must be a tuple of two lists. Received: a tuple of {len(x)}. "
                "A batch of single texts is a list."
            )
        first, second = as_columns(owner, x[0]), as_columns(owner, x[1])
        if len(first) != len(second):
            raise ValueError(
                f"`{owner}`: both sides of a pair must have the same number of texts. "
                f"Received: {len(first)} and {len(second)}."
            )
        return first, second
    if isinstance(x, str | bytes):
        raise ValueError(f"`{owner}`: texts must be a list. Received: one string, {x!r}. Write [text].")
    if not isinstance(x, Sequence) and not hasattr(x, "shape") and not hasattr(x, "to_numpy"):
        rule = "be a list, array, tensor or pandas column of strings, a tuple of two of them, or a `tf.data.Dataset`"
        cure = "Take a column out of a dictionary; collect a generator into lists, or make a `tf.data.Dataset` of it."
        raise TypeError(checks.message(owner, "x", rule, type(x), cure))
    column = as_array(x)
    if isinstance(column, np.ndarray) and column.dtype.kind not in "SO" and column.size:
        raise TypeError(f"`{owner}`: texts must be strings. Received: an array of dtype {column.dtype}.")
    if column.ndim != 1:
        raise ValueError(
            f"`{owner}`: texts must be one column `(rows,)`. Received: shape={tuple(column.shape)}. "
            "Pairs are a tuple of two columns."
        )
    if isinstance(column, np.ndarray):
        for row, text in enumerate(column):
            if not isinstance(text, str | bytes):
                raise TypeError(
                    f"`{owner}`: texts must be strings. Received: {text!r} in row {row}. "
                    "Missing values must be removed or replaced first."
                )
        column = column.astype(object)
    return column


def num_rows(columns: Any) -> int:
    """How many texts there are."""
    return len(columns[0] if isinstance(columns, tuple) else columns)


def as_dataset(
    owner: str, columns: Any, y: Any = None, sample_weight: Any = None, *, batch_size: int | None, shuffle: bool
) -> tf.data.Dataset:
    """Batches of `(text,)`, `(text, y)` or `(text, y, sample_weight)`.

    Args:
        owner: the class that asks, for errors.
        columns: what `as_columns` returns.
        y: one row a text, or None.
        sample_weight: one number a text, or None.
        batch_size: rows a batch, 32 if None, as in Keras.
        shuffle: whether every epoch has its own order, drawn from TensorFlow's global seed.

    Raises:
        ValueError: another number of labels or weights than of texts.
    """
    parts = [columns]
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if values is None:
            break
        array = as_array(values)
        if len(array) != num_rows(columns):
            raise ValueError(
                f"`{owner}`: `{name}` must have one row for each text. "
                f"Received: {num_rows(columns)} texts and {len(array)} rows of {name}."
            )
        parts.append(array)
    dataset = tf.data.Dataset.from_tensor_slices(tuple(parts))
    if shuffle:
        dataset = dataset.shuffle(max(num_rows(columns), 1), reshuffle_each_iteration=True)
    return dataset.batch(batch_size or 32)


def split_rows(owner: str, share: float, *columns: Any) -> tuple[list[Any], list[Any]]:
    """Columns (None stays None) cut into their first rows and the `share` of rows at their end.

    Raises:
        TypeError, ValueError: a share that is not in [0, 1), or that leaves no row to train on.
    """
    share = checks.fraction(owner, "validation_split", share)
    rows = num_rows(columns[0])
    border = int(rows * (1 - share))
    if border == 0:
        raise ValueError(checks.message(owner, "validation_split", f"leave a row of {rows} to train on", share))
    first, last = slice(border), slice(border, None)
    return [_cut(column, first) for column in columns], [_cut(column, last) for column in columns]


def _cut(column: Any, rows: slice) -> Any:
    if isinstance(column, tuple):
        return tuple(_cut(side, rows) for side in column)
    return None if column is None else as_array(column)[rows]
