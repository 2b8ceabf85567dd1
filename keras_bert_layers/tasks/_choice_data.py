"""Prompts and their choices: from what a user hands over to columns, and from strings to ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _text_data as text_data


def as_columns(owner: str, x: Any, *, first_row: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Prompts and choices, checked row by row.

    Args:
        owner: the class that asks, for errors.
        x: a tuple of a column of strings, and a column of lists of strings or an array or tensor `(rows, choices)`.
        first_row: the number of the first row, for errors.

    Returns:
        Arrays of objects: prompts `(rows,)`, and choices `(rows, choices)`, short rows filled up with empty strings.

    Raises:
        TypeError: what is not strings, or not in lists; the row is named.
        ValueError: another tuple; lengths that differ; a row without a choice.
    """
    if not isinstance(x, tuple) or len(x) != 2:
        cure = "Write `(prompts, choices)`: a list of strings, and a list of lists of strings."
        raise ValueError(checks.message(owner, "x", "be a tuple of two columns", type(x), cure))
    prompts = text_data.as_columns(owner, x[0], first_row=first_row)
    choices = _as_choices(owner, x[1], first_row)
    if len(prompts) != len(choices):
        raise ValueError(
            f"`{owner}`: every prompt must have its row of choices. "
            f"Received: {len(prompts)} prompts and {len(choices)} rows of choices."
        )
    there = present(choices)
    if not there.any(axis=1).all():
        row = first_row + int(np.argmin(there.any(axis=1)))
        raise ValueError(f"`{owner}`: every row must have a choice that is not empty. Received: none in row {row}.")
    return prompts, choices[:, : np.flatnonzero(there.any(axis=0)).max(initial=-1) + 1]


def _as_choices(owner: str, choices: Any, first_row: int) -> np.ndarray:
    """Lists of strings, or an array or tensor of them, as an array of objects `(rows, choices)`."""
    rows = choices if isinstance(choices, list | tuple) else []
    for row, texts in enumerate(rows, start=first_row):
        if isinstance(texts, str | bytes):
            raise TypeError(
                f"`{owner}`: `choices` must hold a list of strings for each prompt. Received: {texts!r} in row {row}."
            )
    return text_data.as_table(owner, choices, first_row=first_row)


def present(choices: np.ndarray) -> np.ndarray:
    """Which strings of an array of objects are not empty, bool."""
    return choices.astype(bool)


def checked_places(owner: str, y: Any, choices: np.ndarray) -> np.ndarray:
    """Labels as int32 `(rows,)`, each the place of a choice of its row; TypeError or ValueError otherwise."""
    places = np.asarray(text_data.as_array(y))
    if places.dtype.kind not in "iuf":
        cure = "For a choice's own text: `[row.index(text) for row, text in zip(choices, texts)]`."
        raise TypeError(checks.message(owner, "y", "hold integers", places.dtype, cure))
    places = places.reshape(-1)
    if len(places) != len(choices):
        return places  # told with the other columns' lengths
    for row, place in enumerate(places):
        there = present(choices[row])
        if not (place == np.floor(place) and 0 <= place < len(there) and there[int(place)]):
            raise ValueError(
                f"`{owner}`: every label must be the place of a choice, counted from 0. "
                f"Received: {place} in row {row}, which has {there.sum()} choices."
            )
    return places.astype(np.int32)


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
    """Each prompt with each of its choices as ids `(batch, choices, sequence)`, all padding where there is none."""
    shape = tf.shape(choices)
    ids = preprocessor((tf.repeat(prompts, shape[1]), tf.reshape(choices, [-1])))  # [B * choices, S]
    present = tf.reshape(tf.not_equal(choices, ""), [-1, 1])
    padding = {"token_ids": preprocessor.tokenizer.pad_id, "segment_ids": 0, "padding_mask": 0}
    ids = {key: tf.where(present, values, padding[key]) for key, values in ids.items()}
    return {key: tf.reshape(values, tf.concat([shape, tf.shape(values)[1:]], 0)) for key, values in ids.items()}


def checked_in_graph(places: Any, present: tf.Tensor) -> tf.Tensor:
    """Labels `(batch,)`, each the place of a choice of its row."""
    places = tf.cast(places, tf.int32)
    owners = tf.reduce_any(tf.one_hot(places, tf.shape(present)[1], on_value=True, off_value=False) & present, axis=-1)
    known = tf.debugging.Assert(
        tf.reduce_all(owners),
        ["`BertMultipleChoice`: every label must be the place of a choice, counted from 0. Received: ", places],
    )
    with tf.control_dependencies([] if known is None else [known]):
        return tf.identity(places)
