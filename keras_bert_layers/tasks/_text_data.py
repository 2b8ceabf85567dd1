"""From what a user hands to `fit`, `evaluate` and `predict` to batches of raw text in a `tf.data.Dataset`."""

from __future__ import annotations

from typing import Any

import numpy as np

from keras_bert_layers._internal.lazy import tf


def is_dataset(x: Any) -> bool:
    """Whether `x` is a `tf.data.Dataset` (asked without importing TensorFlow for what cannot be one)."""
    return type(x).__module__.startswith("tensorflow.") and isinstance(x, tf.data.Dataset)


def holds_ids(x: Any) -> bool:
    """Whether `x` is, or yields, the backbone's own inputs, which need no preprocessing."""
    if is_dataset(x):
        element = x.element_spec
        x = element[0] if isinstance(element, tuple) else element
    return isinstance(x, dict) and "token_ids" in x


def as_array(values: Any) -> Any:
    """One column as something that can be sliced: a NumPy array, or the tensor that it is."""
    if hasattr(values, "to_numpy"):  # pandas and polars columns
        values = values.to_numpy()
    if hasattr(values, "shape") and not isinstance(values, np.ndarray):
        return values
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind in "UT" else array


def as_columns(owner: str, x: Any) -> Any:
    """Texts as one array `(rows,)`, or a pair of them as a tuple of two.

    Raises:
        TypeError: text that is not strings; the message names the first row that is not.
        ValueError: no rows, one bare string, or a pair whose sides have different lengths.
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
    column = as_array(x)
    if isinstance(column, np.ndarray) and column.dtype.kind not in "SO" and column.size:
        raise TypeError(f"`{owner}`: texts must be strings. Received: an array of dtype {column.dtype}.")
    if column.ndim != 1:
        raise ValueError(f"`{owner}`: texts must be one column `(rows,)`. Received: shape={tuple(column.shape)}.")
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
