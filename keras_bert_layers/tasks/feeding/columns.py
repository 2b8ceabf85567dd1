"""Columns of raw text: recognizes what a user gives, checks it, and cuts it by rows.

A column is a NumPy array or a tensor with one row per text; several columns of equally many rows are a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import SUBSTITUTE, tf
from keras_bert_layers._internal.types import Columns, Rows, Strings, Tensor
from keras_bert_layers.export.text_task import TextTask


def is_dataset(x: Rows) -> bool:
    """Whether `x` is a `tf.data.Dataset`; TensorFlow is not imported for what cannot be one."""
    return _may_be_of_tf(x) and isinstance(x, tf.data.Dataset)


def is_ragged(x: Rows) -> bool:
    """Whether `x` is a `tf.RaggedTensor`."""
    return _may_be_of_tf(x) and isinstance(x, tf.RaggedTensor)


def is_of_tensorflow(x: Any) -> bool:
    """Whether the class of `x` is TensorFlow's own, and not what stands for it where it is not installed."""
    return type(x).__module__.startswith("tensorflow.")


def _may_be_of_tf(x: Rows) -> bool:
    return is_of_tensorflow(x) or type(x).__module__.startswith(SUBSTITUTE)


def first_part(x: Any) -> Any:
    """The inputs that a dataset (as specs) or a `PyDataset` (its first batch) yields; anything else unchanged."""
    if isinstance(x, keras.utils.PyDataset):
        return keras.utils.unpack_x_y_sample_weight(x[0])[0]
    if not is_dataset(x):
        return x
    element = x.element_spec
    return element[0] if isinstance(element, tuple) else element


def has_key(x: Rows, key: str) -> bool:
    """Whether `x` is, or yields, a dictionary with that key, such as the model's own inputs."""
    x = first_part(x)
    return isinstance(x, dict) and key in x


def is_pair(x: Rows) -> bool:
    """Whether `x` is, or yields, a tuple of columns and not a single one."""
    return isinstance(first_part(x), tuple)


def holds_text(x: Rows) -> bool:
    """Whether `x` is, or yields, strings: bare, in lists, arrays and tensors, or in tuples of these."""
    x = first_part(x)
    if isinstance(x, list | tuple):
        return len(x) > 0 and holds_text(x[0])
    dtype = getattr(x, "dtype", None)
    return isinstance(x, str | bytes) or getattr(dtype, "kind", "") in tuple("SUOT") or "string" in str(dtype)


def as_tuple(columns: Any) -> tuple[Any, ...]:
    """Columns as a tuple, also where there is one alone.

    Examples:
        >>> as_tuple("a"), as_tuple(("a", "b"))
        (('a',), ('a', 'b'))
    """
    return columns if isinstance(columns, tuple) else (columns,)


def check_text_dataset(owner: str, dataset: tf.data.Dataset, *, most: int = 2) -> None:
    """Refuses a dataset that does not yield batches of text; ValueError.

    Args:
        owner: the class to name in errors.
        dataset: a `tf.data.Dataset`.
        most: the most columns of text that a row may have; those after the second may hold several texts per row.
    """
    text = first_part(dataset)
    sides = as_tuple(text)
    if len(sides) > most or not all(isinstance(side, tf.TensorSpec) and side.dtype == tf.string for side in sides):
        cure = "For dictionaries: `dataset.map(lambda row: (row['text'], row['label']))`."
    elif any(side.shape.rank != 1 for side in sides[:2]) or any(side.shape.rank not in (1, 2) for side in sides[2:]):
        cure = "Call `dataset.batch(32)` first, if it yields single texts."
    else:
        return
    rule = (
        "yield `text`, `(text, y)` or `(text, y, sample_weight)`, the text a string tensor `(batch,)` or a tuple of "
        + _two_to(most)
    )
    raise ValueError(checks.message(owner, "x", rule, dataset.element_spec, cure))


def _two_to(most: int) -> str:
    return "two" if most == 2 else f"two to {most}"


def refuse_beside_dataset(owner: str, *, batch_size: int | None, **columns: Any) -> None:
    """Refuses arguments that a dataset itself must hold; ValueError unless all of them are None."""
    for name, value in columns.items():
        if value is not None:
            cure = "The dataset itself must yield `(text, y)` or `(text, y, sample_weight)`."
            raise ValueError(checks.message(owner, name, "be None where `x` is a dataset", type(value), cure))
    if batch_size is not None:
        cure = "Batch the dataset itself: `dataset.batch(batch_size)`."
        raise ValueError(checks.message(owner, "batch_size", "be None where `x` is a dataset", batch_size, cure))


def column_values(column: Any) -> Any:
    """A column of pandas, polars or Arrow as a NumPy array; anything else unchanged."""
    if hasattr(column, "to_pylist"):  # Arrow's, which copies strings only if it may
        return column.to_numpy(zero_copy_only=False)
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def as_array(values: Any) -> Any:
    """One column in a form that can be sliced: a NumPy array, or the tensor that it is."""
    values = column_values(values)
    if hasattr(values, "shape") and not isinstance(values, np.ndarray):
        return values
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths, such as the labels of texts that have several
        return np.fromiter(values, object)
    # Numbers may be in a column of objects: pandas makes one where a missing value was filled.
    held = (str, bytes, list, tuple, np.ndarray)
    if array.dtype.kind == "O" and array.size and not any(isinstance(value, held) for value in array.flat):
        array = np.asarray(array.tolist())
    return array.astype(object) if array.dtype.kind in "UT" else array


def check_takes_text(task: TextTask) -> None:
    """Refuses a task without a preprocessor; ValueError."""
    if task.preprocessor is None:
        cure = "Make the task with `preprocessor=BertPreprocessor(tokenizer)`."
        raise ValueError(checks.message(type(task).__name__, "preprocessor", "be given for raw text", None, cure))


def is_single_row(x: Rows) -> bool:
    """Whether `x` is one text, or a tuple that begins with one, and not columns."""
    return isinstance(x[0] if isinstance(x, tuple) and x else x, str | bytes)


def as_rows(x: Rows) -> Any:
    """A single row as columns of one row."""
    return tuple([part] for part in x) if isinstance(x, tuple) else [x]


def as_columns(owner: str, x: Rows, *, most: int = 2, first_row: int = 0) -> Any:
    """Texts as one array `(rows,)`, or a tuple of 2 to `most` arrays.

    Args:
        owner: the class to name in errors.
        x: a column of texts, or a tuple of columns; those after the second may hold several texts per row.
        most: the most columns that there may be.
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
    has_string = any(isinstance(side, str | bytes) for side in x)
    if not 2 <= len(x) <= most or has_string:
        strings = ", with strings where lists must be" if has_string else ""
        rule = f"a pair of texts must be a tuple of {_two_to(most)} lists"
        cure = "A batch of single texts is a list."
        raise ValueError(checks.row_message(owner, rule, f"a tuple of {len(x)}{strings}", cure))
    sides = (
        *(_as_column(owner, side, first_row) for side in x[:2]),
        *(as_table(owner, side, first_row=first_row) for side in x[2:]),
    )
    lengths = [len(side) for side in sides]
    if len(set(lengths)) > 1:
        rule = "both sides of a pair must have the same number of texts"
        raise ValueError(checks.row_message(owner, rule, " and ".join(map(str, lengths))))
    return sides


def _as_column(owner: str, x: Any, first_row: int) -> Any:
    """One column of texts, checked row by row."""
    if isinstance(x, str | bytes):
        raise ValueError(f"`{owner}`: texts must be a list. Received: one string, {x!r}. Write [text].")
    if is_ragged(x):
        cure = "Join the words of each row with spaces: `tf.strings.reduce_join(x, axis=1, separator=' ')`."
        raise TypeError(checks.message(owner, "x", "hold one text per row", f"a RaggedTensor {x.shape}", cure))
    if not isinstance(x, Sequence) and not hasattr(x, "shape") and not hasattr(x, "to_numpy"):
        rule = "be a list, array, tensor or pandas column of strings, a tuple of two of them, or a `tf.data.Dataset`"
        cure = (
            "Take a column out of a dictionary. A generator gives batches `(x, y)` to `fit`, and rows to `predict`, of "
            "pairs `zip(first, second)`."
        )
        raise TypeError(checks.message(owner, "x", rule, type(x), cure))
    # Strings of a list stay objects: NumPy would pad each one to the length of the longest, and make a string, such as
    # "nan", of a number among them.
    is_list = isinstance(x, Sequence) and any(isinstance(text, str | bytes) for text in x)
    column = np.fromiter(x, object) if is_list else as_array(x)
    if isinstance(column, np.ndarray) and column.dtype.kind not in "SO" and column.size:
        first = f", {column[0].item()!r} in row {first_row}" if column.ndim == 1 else ""
        raise TypeError(f"`{owner}`: texts must be strings. Received: an array of dtype {column.dtype}{first}.")
    if column.ndim != 1:
        rule, cure = "texts must be one column `(rows,)`", "Pairs are a tuple of two columns."
        if names := list(getattr(x, "columns", ())):  # of a table of pandas or polars
            cure = f"Take one column of the table: `table[{names[0]!r}]`."
        raise ValueError(checks.row_message(owner, rule, f"shape={tuple(column.shape)}", cure))
    if not isinstance(column, np.ndarray):
        return column
    for row, text in enumerate(column, start=first_row):
        if not isinstance(text, str | bytes):
            cure = "Missing values must be removed or replaced first."
            raise TypeError(checks.row_message(owner, "texts must be strings", f"{text!r} in row {row}", cure))
        checks.unicode_text(owner, text, row)
    return column.astype(object)


def as_table(owner: str, x: Any, *, first_row: int = 0, argument: str = "x[2]") -> np.ndarray:
    """One or several texts per row as an array of objects `(rows, texts)`, short rows padded with empty strings.

    Args:
        owner: the class to name in errors.
        x: a column of texts or of lists of texts, or an array or tensor `(rows, texts)`.
        first_row: the index of the first row, for errors.
        argument: the argument that holds the column, for errors.

    Raises:
        TypeError: a row that holds anything but strings; the message names it.
    """
    x = column_values(x)
    if isinstance(x, str | bytes) or not (isinstance(x, Sequence) or hasattr(x, "shape")):
        rule = "be a column of texts, or of lists of texts"
        raise TypeError(checks.message(owner, argument, rule, type(x)))
    rows = [[row] if isinstance(row, str | bytes) else row for row in (x.numpy() if hasattr(x, "numpy") else x)]
    for index, row in enumerate(rows, start=first_row):
        if not hasattr(row, "__iter__") or not all(isinstance(text, str | bytes) for text in row):
            raise TypeError(f"`{owner}`: texts must be strings. Received: {row!r} in row {index}.")
        checks.unicode_text(owner, "".join(text for text in row if isinstance(text, str)), index)
    return filled_table([list(row) for row in rows], "", object)


def filled_table(rows: Sequence[Any], value: Any, dtype: Any, *, least: int = 1) -> np.ndarray:
    """Rows of unequal lengths as an array `(rows, longest)`, at least so wide, with a value behind the end of a row."""
    table = np.full((len(rows), max([least, *map(len, rows)])), value, dtype)
    for padded, row in zip(table, rows, strict=True):
        padded[: len(row)] = row
    return table


def num_rows(columns: Any) -> int:
    """The number of rows, dense or ragged."""
    column, *_ = tf.nest.flatten(columns) if isinstance(columns, tuple | dict) else [columns]
    return int(column.shape[0]) if is_ragged(column) else len(column)


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
    return _cut(columns, slice(first)), _cut(columns, slice(first, None))


def _cut(column: Any, rows: slice) -> Any:
    if isinstance(column, tuple):
        return tuple(_cut(side, rows) for side in column)
    if isinstance(column, dict):
        return {name: _cut(side, rows) for name, side in column.items()}
    return None if column is None else column[rows]


def as_tensor(values: Tensor) -> Any:
    """A column as a tensor; None and ragged tensors unchanged."""
    return values if values is None or is_ragged(values) else tf.convert_to_tensor(values)


def gather_rows(columns: Columns, rows: tf.Tensor) -> Any:
    """The chosen rows of each column, in graph; None stays None."""
    return tf.nest.map_structure(lambda column: None if column is None else tf.gather(column, rows), columns)


def without_none(*parts: Any) -> tuple[Any, ...]:
    """A tuple without the Nones at its end, such as `(x,)` of `(x, None, None)`."""
    last = max((index for index, part in enumerate(parts) if part is not None), default=-1)
    return parts[: last + 1]


def on_host(function: Callable[[Any], Any], texts: Strings) -> Any:
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
