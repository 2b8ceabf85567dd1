"""Prompts and choices: from what a user hands over to checked columns, and from strings to ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks.inputs import _columns as columns_of


def as_columns(owner: str, x: Any, *, first_row: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Prompts and choices, checked row by row.

    Args:
        owner: the class that asks, for errors.
        x: a column of strings, and a column of lists of strings or an array or tensor `(rows, choices)`, as a tuple.
        first_row: the index of the first row, for errors.

    Returns:
        Arrays of objects: prompts `(rows,)`, and choices `(rows, choices)`, short rows padded with empty strings.

    Raises:
        TypeError: a row that is not a list of strings; the message names it.
        ValueError: not a tuple of two columns of equal length; a row without a choice.
    """
    if not isinstance(x, tuple) or len(x) != 2:
        cure = "Write `(prompts, choices)`: a list of strings, and a list of lists of strings."
        raise ValueError(checks.message(owner, "x", "be a tuple of two columns", type(x), cure))
    prompts = columns_of.as_columns(owner, x[0], first_row=first_row)
    choices = _as_choices(owner, x[1], first_row)
    if len(prompts) != len(choices):
        raise ValueError(
            f"`{owner}`: every prompt must have its row of choices. "
            f"Received: {len(prompts)} prompts and {len(choices)} rows of choices."
        )
    is_present = present(choices)
    if not is_present.any(axis=1).all():
        row = first_row + int(np.argmin(is_present.any(axis=1)))
        raise ValueError(f"`{owner}`: every row must have a choice that is not empty. Received: none in row {row}.")
    return prompts, choices[:, : np.flatnonzero(is_present.any(axis=0)).max(initial=-1) + 1]


def _as_choices(owner: str, choices: Any, first_row: int) -> np.ndarray:
    """Lists of strings, or an array or tensor of them, as an array of objects `(rows, choices)`."""
    rows = choices if isinstance(choices, list | tuple) else []
    for row, texts in enumerate(rows, start=first_row):
        if isinstance(texts, str | bytes):
            raise TypeError(
                f"`{owner}`: `choices` must hold a list of strings for each prompt. Received: {texts!r} in row {row}."
            )
    return columns_of.as_table(owner, choices, first_row=first_row)


def present(choices: np.ndarray) -> np.ndarray:
    """Whether each string of an array of objects is a choice, that is, not empty."""
    return choices.astype(bool)


def checked_indices(owner: str, y: Any, choices: np.ndarray) -> np.ndarray:
    """Labels as int32 `(rows,)`, each the index of a choice of its row; TypeError or ValueError otherwise."""
    indices = np.asarray(columns_of.as_array(y))
    if indices.dtype.kind not in "iuf":
        cure = "For a choice's own text: `[row.index(text) for row, text in zip(choices, texts)]`."
        raise TypeError(checks.message(owner, "y", "hold integers", indices.dtype, cure))
    indices = indices.reshape(-1)
    if len(indices) != len(choices):
        return indices  # reported with the lengths of the other columns
    for row, index in enumerate(indices):
        is_present = present(choices[row])
        if not (index == np.floor(index) and 0 <= index < len(is_present) and is_present[int(index)]):
            raise ValueError(
                f"`{owner}`: every label must be the index of a choice, counted from 0. "
                f"Received: {index} in row {row}, which has {is_present.sum()} choices."
            )
    return indices.astype(np.int32)


def check_dataset(owner: str, dataset: Any) -> None:
    """Refuses a dataset that does not yield batches of prompts and choices; ValueError."""
    element = dataset.element_spec
    first = element[0] if isinstance(element, tuple) else None
    if isinstance(first, tuple) and len(first) == 2:
        prompts, choices = first
        if prompts.dtype == choices.dtype == tf.string and (prompts.shape.rank, choices.shape.rank) == (1, 2):
            return
    rule = "yield `((prompts, choices), y)`, string tensors `(batch,)` and, ragged or not, `(batch, choices)`"
    cure = "Without labels: `((prompts, choices),)`. Call `dataset.batch(32)` first, if it yields single rows."
    raise ValueError(checks.message(owner, "x", rule, element, cure))


def ids_of_choices(preprocessor: BertPreprocessor, prompts: Any, choices: Any) -> dict[str, tf.Tensor]:
    """Each prompt with each of its choices as ids `(batch, choices, sequence)`; an absent choice is all padding."""
    shape = tf.shape(choices)
    ids = preprocessor((tf.repeat(prompts, shape[1]), tf.reshape(choices, [-1])))  # [B * choices, S]
    present = tf.reshape(tf.not_equal(choices, ""), [-1, 1])
    padding = {"token_ids": preprocessor.tokenizer.pad_id, "segment_ids": 0, "padding_mask": 0}
    ids = {key: tf.where(present, values, padding[key]) for key, values in ids.items()}
    return {key: tf.reshape(values, tf.concat([shape, tf.shape(values)[1:]], 0)) for key, values in ids.items()}


def checked_in_graph(indices: Any, present: tf.Tensor) -> tf.Tensor:
    """Labels `(batch,)` as int32, after an assertion that each is the index of a choice of its row."""
    indices = tf.cast(indices, tf.int32)
    owners = tf.reduce_any(tf.one_hot(indices, tf.shape(present)[1], on_value=True, off_value=False) & present, axis=-1)
    known = tf.debugging.Assert(
        tf.reduce_all(owners),
        ["`BertMultipleChoice`: every label must be the index of a choice, counted from 0. Received: ", indices],
    )
    with tf.control_dependencies([] if known is None else [known]):
        return tf.identity(indices)
