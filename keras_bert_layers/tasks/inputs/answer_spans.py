"""Turns answers in characters into positions in windows, and windows into training steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import check_in_graph
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Labels, Tensor
from keras_bert_layers.preprocessing.preprocessors.windows import NO_OFFSET
from keras_bert_layers.tasks.feeding import former_order
from keras_bert_layers.tasks.feeding.columns import column_values, gather_rows
from keras_bert_layers.tasks.feeding.epochs import (
    GROUPED_BATCHES,
    WINDOWS,
    Epochs,
    RowOrder,
    by_length,
    numbered,
    permutation,
)

START, END = "start_logits", "end_logits"
SHUFFLED_WINDOWS = 1024
SHOWN = 60
AT_ITS_START = "the context must contain each answer at its start, counted in characters"


def answer_columns(owner: str, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The start and the text of one answer per row, from the forms that SQuAD and its readers have.

    Args:
        owner: the class that asks, for errors.
        y: a tuple of two columns, starts and texts, each row a value or a list of which the first counts; or one row
            per question, each a dictionary of `"answer_start"` and `"text"`, again values or lists, or a list of such
            dictionaries. A row without an answer is an empty list, `""` or None.

    Returns:
        The starts in characters, int64 `(rows,)`, -1 without an answer; the texts, objects `(rows,)`, `""` without one.

    Raises:
        TypeError: a row in another form; the message names it.
        ValueError: two columns of different lengths.
    """
    if isinstance(y, tuple):
        if len(y) != 2 or len(y[0]) != len(y[1]):
            rule = "be a tuple of two equally long columns, (answer starts, answer texts), or one dictionary per row"
            raise ValueError(checks.message(owner, "y", rule, [len(side) for side in y]))
        pairs = [(_first(start), _first(text)) for start, text in zip(*map(_as_rows, y), strict=True)]
    else:
        pairs = [_pair(_first(row)) for row in _as_rows(y)]
    starts, texts = np.full(len(pairs), -1, np.int64), np.full(len(pairs), "", object)
    for row, (start, text) in enumerate(pairs):
        if text is None or (isinstance(text, str | bytes) and not text):
            continue
        if not isinstance(text, str | bytes) or isinstance(start, bool | np.bool_) or not hasattr(start, "__index__"):
            rule = "an answer must be a start, an integer, and a text"
            raise TypeError(checks.row_message(owner, rule, f"{start!r} and {text!r} in row {row}"))
        starts[row], texts[row] = start, text
    return starts, texts


def _as_rows(column: Tensor) -> Any:
    """A column that can be iterated row by row."""
    return column_values(column.numpy() if hasattr(column, "numpy") else column)


def _first(value: object) -> Any:
    """A value, or the first of a list, or None if the list is empty."""
    if isinstance(value, list | tuple | np.ndarray):
        return value[0] if len(value) else None
    return value


def _pair(answer: Any) -> tuple[Any, Any]:
    """Start and text of one dictionary."""
    if answer is None:
        return -1, None
    if isinstance(answer, dict) and {"answer_start", "text"} <= set(answer):
        return _first(answer["answer_start"]), _first(answer["text"])
    return None, answer  # refused with its row


def byte_spans(contexts: tf.Tensor, starts: tf.Tensor, texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The bytes of answers.

    Args:
        contexts: strings `[B]`.
        starts: integers `[B]`, the character at which an answer starts.
        texts: strings `[B]`, `""` where there is no answer.

    Returns:
        int32 `[B, 2]`, the first byte and the byte after the last, both 0 without an answer; and bool `[B]`, whether
        the context has the answer at that position.
    """
    starts = tf.cast(starts, tf.int32)
    before = tf.strings.substr(contexts, tf.zeros_like(starts), tf.maximum(starts, 0), unit="UTF8_CHAR")
    begins, lengths = tf.strings.length(before), tf.strings.length(texts)
    has_answer = lengths > 0
    is_there = (tf.strings.substr(contexts, begins, lengths) == texts) & (starts >= 0)
    spans = tf.where(has_answer[:, None], tf.stack([begins, begins + lengths], axis=1), 0)
    return spans, is_there | ~has_answer


def check_byte_spans(owner: str, contexts: Any, y: Labels) -> np.ndarray:
    """The bytes of a column of answers, int32 `(rows, 2)`; see `byte_spans`.

    Raises:
        TypeError, ValueError: as `answer_columns`; another number of answers than of contexts; an answer that its
            context does not have at its start (the message names the row).
    """
    starts, texts = answer_columns(owner, y)
    if len(starts) != len(contexts):
        received = f"{len(contexts)} questions and {len(starts)} rows of y"
        raise ValueError(checks.row_message(owner, "`y` must have one row for each question", received))
    spans, is_found = byte_spans(*(tf.convert_to_tensor(column) for column in (contexts, starts, texts)))
    if not np.all(is_found):
        row = int(np.argmin(is_found))
        context, text = (value.decode() if isinstance(value, bytes) else value for value in (contexts[row], texts[row]))
        found, where = context[max(starts[row], 0) :][:SHOWN], context.find(text)
        cure = f"Its first occurrence is at {where}." if where >= 0 else "The context does not contain it."
        received = f"{text[:SHOWN]!r} at {starts[row]} in row {row}, where the context has {found!r}"
        raise ValueError(checks.row_message(owner, AT_ITS_START, received, cure))
    return np.asarray(spans)


def check_byte_spans_in_graph(owner: str, contexts: tf.Tensor, y: Labels) -> tf.Tensor:
    """`byte_spans` in graph, after an assertion that shows the first answer that is not in its context at its start."""
    if not isinstance(y, tuple) or len(y) != 2 or not y[0].dtype.is_integer or y[1].dtype != tf.string:
        rule = "be a tuple of two, (answer starts, answer texts), integers and strings `(batch,)`"
        raise ValueError(checks.message(owner, "y", rule, y))
    spans, is_found = byte_spans(contexts, *y)
    row = tf.argmin(tf.cast(is_found, tf.int32))
    message = [f"`{owner}`: {AT_ITS_START}. Received: ", y[1][row], y[0][row]]
    return check_in_graph(spans, tf.reduce_all(is_found), message)


def window_labels(windows: dict[str, tf.Tensor], spans: tf.Tensor) -> dict[str, tf.Tensor]:
    """The positions in each window at which its answer starts and ends.

    Args:
        windows: what `SpanPreprocessor` returns.
        spans: int32 `[B, 2]`, the bytes of each row's answer.

    Returns:
        Starts and ends, int32 `[W]` each; 0, which is [CLS], for a window that does not hold all tokens of the answer.
    """
    starts, ends, rows = windows["starts"], windows["ends"], windows["rows"]
    of_window = tf.gather(spans, rows)  # [W, 2]
    is_inside = (starts != NO_OFFSET) & (ends > of_window[:, :1]) & (starts < of_window[:, 1:])  # [W, S]
    first = tf.reduce_min(tf.where(is_inside, starts, starts.dtype.max), axis=1)  # [W]
    last = tf.reduce_max(tf.where(is_inside, ends, NO_OFFSET), axis=1)
    num_rows = tf.shape(spans)[0]
    # Every token is in at least one window, so all windows together give the start and the end of the answer.
    has_first = first == tf.gather(tf.math.unsorted_segment_min(first, rows, num_rows), rows)
    has_last = last == tf.gather(tf.math.unsorted_segment_max(last, rows, num_rows), rows)
    is_whole = tf.cast(has_first & has_last & tf.reduce_any(is_inside, axis=1), tf.int32)
    inside = tf.cast(is_inside, tf.int32)
    width = tf.shape(inside)[1]
    return {
        START: is_whole * tf.argmax(inside, axis=1, output_type=tf.int32),
        END: is_whole * (width - 1 - tf.argmax(inside[:, ::-1], axis=1, output_type=tf.int32)),
    }


def as_steps(windows: tf.data.Dataset, batch_size: int, epochs: Epochs | None) -> tf.data.Dataset:
    """Steps of `batch_size` windows, from batches of other sizes.

    Args:
        windows: yields tuples of tensors, windows first, all of the same width.
        batch_size: windows per step.
        epochs: whether windows are shuffled, so that those of one question are not all in one step.
    """
    if epochs is None or epochs.order is RowOrder.AS_GIVEN:
        return windows.rebatch(batch_size)

    def lengths(ids: dict[str, tf.Tensor], *_: Any) -> tf.Tensor:
        return tf.reduce_sum(ids["padding_mask"], axis=1)

    is_sorted = epochs.order is RowOrder.BY_LENGTH

    def make(seed: tf.Tensor) -> tf.data.Dataset:
        def shuffled(group: tf.Tensor, parts: Any) -> Any:
            num_windows = tf.shape(tf.nest.flatten(parts)[0])[0]
            return gather_rows(parts, permutation(seed, num_windows, of=WINDOWS, group=group))

        groups = numbered(windows.rebatch(SHUFFLED_WINDOWS)).map(shuffled).prefetch(1)
        if not is_sorted:
            return groups.rebatch(batch_size)
        return by_length(groups.rebatch(batch_size * GROUPED_BATCHES), batch_size, lengths=lengths, seed=seed)

    def former(seed: tf.Tensor) -> tf.data.Dataset:
        sorted_by = lengths if is_sorted else None
        rows = windows.unbatch()
        return former_order.batches(rows, batch_size, lengths=sorted_by, buffer=SHUFFLED_WINDOWS, seed=seed)

    return epochs.dataset(make, former)
