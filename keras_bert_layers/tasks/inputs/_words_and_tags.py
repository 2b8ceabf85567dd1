"""From rows of words with tags, and texts with spans, to checked ragged columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.inputs import _columns as columns_of
from keras_bert_layers.tasks.inputs._tag_labels import IGNORED


def holds_words(x: Any) -> bool:
    """Whether `x` is, or yields, rows of words rather than texts."""
    if columns_of.is_dataset(x):
        return isinstance(columns_of.first_part(x), tf.RaggedTensorSpec)
    if columns_of.is_ragged(x):
        return True
    rows = as_list(x) if isinstance(x, Sequence) or hasattr(x, "to_numpy") or isinstance(x, np.ndarray) else []
    return len(rows) > 0 and isinstance(rows[0], list | tuple | np.ndarray)


def as_list(values: Any) -> Any:
    """A column that can be indexed: a list or an array; an array also for a pandas or polars column."""
    return values.to_numpy() if hasattr(values, "to_numpy") else values


def as_words(owner: str, x: Any, *, first_row: int = 0) -> tf.RaggedTensor:
    """Rows of words as ragged strings `(rows, words)`; errors count rows from `first_row`.

    Raises:
        TypeError: a row that is not a list of strings; the message names it.
    """
    if columns_of.is_ragged(x):
        return x
    rows = as_list(x)
    for number, row in enumerate(rows, start=first_row):
        if not isinstance(row, list | tuple | np.ndarray) or not all(isinstance(word, str | bytes) for word in row):
            raise TypeError(f"`{owner}`: words must be a list of strings. Received: {row!r} in row {number}.")
    return _ragged([list(row) for row in rows], tf.string)


def as_tags(owner: str, y: Any, words: tf.RaggedTensor, tag_names: Sequence[str]) -> tf.RaggedTensor:
    """Rows of tag names or ids as ragged int32 `(rows, words)`, checked tag by tag.

    Raises:
        TypeError: a row that is not a list.
        ValueError: another number of rows or tags than of rows or words; an unknown tag.
    """
    if columns_of.is_ragged(y):
        return y
    rows, lengths = as_list(y), words.row_lengths().numpy()
    _check_num_rows(owner, rows, len(lengths))
    ids: dict[Any, int] = {IGNORED: IGNORED}
    for tag_id, name in enumerate(tag_names):
        ids[name] = ids[tag_id] = tag_id
    found = []
    for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        if not isinstance(row, list | tuple | np.ndarray):
            raise TypeError(f"`{owner}`: tags must be a list for each row of words. Received: {row!r} in row {number}.")
        if len(row) != length:
            raise ValueError(
                f"`{owner}`: there must be one tag for each word. "
                f"Received: {length} words and {len(row)} tags in row {number}."
            )
        tags = [tag.decode() if isinstance(tag, bytes) else tag for tag in row]
        for position, tag in enumerate(tags):
            if isinstance(tag, bool) or not isinstance(tag, str | Integral) or tag not in ids:
                raise ValueError(
                    f"`{owner}`: every tag must be one of {list(tag_names)}, or an index into this list. "
                    f"Received: {tag!r} at word {position} of row {number}."
                )
        found.append([ids[tag] for tag in tags])
    return _ragged(found, tf.int32)


def as_spans(owner: str, y: Any, texts: Any, labels: list[str]) -> tuple[tf.RaggedTensor, ...]:
    """Rows of `(start, end, label)` as ragged starts, ends and labels `(rows, spans)`, checked and in order.

    Raises:
        TypeError: a row that is not a list of such tuples.
        ValueError: another number of rows than of texts; a span that is empty, only whitespace, outside its text, or
            overlaps another; an unknown label.
    """
    if isinstance(y, tuple) and len(y) == 3 and all(columns_of.is_ragged(part) for part in y):
        return y
    rows, texts = as_list(y), [text.decode() if isinstance(text, bytes) else text for text in np.asarray(texts)]
    _check_num_rows(owner, rows, len(texts))
    found = [
        _checked_spans(owner, row, text, labels, number)
        for number, (row, text) in enumerate(zip(rows, texts, strict=True))
    ]
    return tuple(
        _ragged([[span[part] for span in row] for row in found], dtype)
        for part, dtype in enumerate((tf.int32, tf.int32, tf.string))
    )


def _checked_spans(owner: str, row: Any, text: str, labels: list[str], number: int) -> list[tuple[int, int, str]]:
    def refuse(rule: str, received: Any, error: type[Exception] = ValueError) -> Exception:
        return error(f"`{owner}`: {rule}. Received: {received!r} in row {number}.")

    if not isinstance(row, list | tuple):
        raise refuse("spans must be a list of (start, end, label) for each text", row, TypeError)
    for span in row:
        numbers = span[:2] if isinstance(span, list | tuple) and len(span) == 3 else [None]
        if not all(isinstance(value, Integral) and not isinstance(value, bool) for value in numbers):
            raise refuse("every span must be (start, end, label), two integers and a string", span, TypeError)
        start, end, label = span
        if label not in labels:
            raise refuse(f"every label must be one of {labels}", span)
        if not 0 <= start < end <= len(text):
            raise refuse(f"every span must lie in its text of {len(text)} characters and not be empty", span)
        if not text[start:end].strip():
            raise refuse("every span must hold more than whitespace", span)
    spans = sorted((int(start), int(end), label) for start, end, label in row)
    for before, span in itertools.pairwise(spans):
        if span[0] < before[1]:
            raise refuse("spans must not overlap", [before, span])
    return spans


def _check_num_rows(owner: str, rows: Any, expected: int) -> None:
    if not isinstance(rows, Sequence | np.ndarray) or isinstance(rows, str | bytes):
        raise TypeError(checks.message(owner, "y", "be a list with one row for each row of x", type(rows)))
    if len(rows) != expected:
        raise ValueError(f"`{owner}`: `y` must have one row for each row of x. Received: {len(rows)} and {expected}.")


def _ragged(rows: Sequence[Sequence[Any]], dtype: tf.DType) -> tf.RaggedTensor:
    values = [value for row in rows for value in row]
    lengths = tf.constant([len(row) for row in rows], tf.int64, shape=[len(rows)])
    return tf.RaggedTensor.from_row_lengths(tf.constant(values, dtype, shape=[len(values)]), lengths, validate=False)


def check_dataset(owner: str, dataset: tf.data.Dataset) -> None:
    """Refuses a dataset that yields neither batches of words with tags nor of texts with spans; ValueError."""
    spec = dataset.element_spec
    x, y = (*spec, None)[:2] if isinstance(spec, tuple) else (spec, None)
    if isinstance(x, tf.RaggedTensorSpec):
        is_right = x.dtype == tf.string and x.shape.rank == 2 and (y is None or isinstance(y, tf.RaggedTensorSpec))
    else:
        is_spans = isinstance(y, tuple) and len(y) == 3 and all(isinstance(part, tf.RaggedTensorSpec) for part in y)
        is_right = (
            isinstance(x, tf.TensorSpec) and x.dtype == tf.string and x.shape.rank == 1 and (y is None or is_spans)
        )
    if not is_right:
        rule = "yield `(words, tags)`, ragged `(batch, words)` both, or `(text, (starts, ends, labels))`, ragged spans"
        cure = "Rows of words become such batches by `dataset.ragged_batch(32)`."
        raise ValueError(checks.message(owner, "x", rule, spec, cure))
