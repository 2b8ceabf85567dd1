"""Prompts with choices, for multiple choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import check_in_graph
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers._internal.types import Columns, Rows, Tensor
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.feeding.columns import as_array, as_columns, as_table, first_part, on_host, without_none
from keras_bert_layers.tasks.inputs.inputs import TEXT, Inputs

LABEL_RULE = "every label must be the index of a choice, counted from 0"


class ChoiceInputs(Inputs):
    """Prompts and choices; labels are indices of choices, and a row of outputs has one score per choice.

    Args:
        owner: the task's class, for errors.
        preprocessor: a `BertPreprocessor`, or None.
        fill_value: the score of a choice that is absent.
    """

    #: Short rows of choices are padded with empty strings.
    text_inputs: Mapping[str, Any] = {"prompt": TEXT, "choices": ((None, None), "string")}

    def __init__(self, owner: str, preprocessor: TextLayer | None, *, fill_value: float):
        super().__init__(owner, preprocessor)
        self.fill_value = fill_value

    def columns(self, x: Rows, *, first_row: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Prompts `(rows,)` and choices `(rows, choices)`, checked row by row, padded with empty strings.

        Args:
            x: a column of strings, and a column of lists of strings or an array or tensor `(rows, choices)`, as a
                tuple.
            first_row: the index of the first row, for errors.

        Raises:
            TypeError: a row that is not a list of strings; the message names it.
            ValueError: not a tuple of two columns of equal length; a row without a choice.
        """
        if not isinstance(x, tuple) or len(x) != 2:
            cure = "Write `(prompts, choices)`: a list of strings, and a list of lists of strings."
            raise ValueError(checks.message(self.owner, "x", "be a tuple of two columns", type(x), cure))
        prompts, choices = columns_of_rows(self.owner, *x, names=("prompt", "prompts", "choice"), first_row=first_row)
        return prompts, choices[:, : np.flatnonzero(choices.astype(bool).any(axis=0)).max(initial=-1) + 1]

    def check_dataset(self, dataset: tf.data.Dataset) -> None:
        """Refuses a dataset that does not yield batches of prompts and choices; ValueError."""
        x = first_part(dataset)
        is_right = isinstance(dataset.element_spec, tuple) and isinstance(x, tuple) and len(x) == 2
        if not is_right or [(side.dtype, side.shape.rank) for side in x] != [(tf.string, 1), (tf.string, 2)]:
            rule = "yield `((prompts, choices), y)`, string tensors `(batch,)` and, ragged or not, `(batch, choices)`"
            cure = "Without labels: `((prompts, choices),)`. Call `dataset.batch(32)` first, if it yields single rows."
            raise ValueError(checks.message(self.owner, "x", rule, dataset.element_spec, cure))

    def labels(self, columns: Any, y: Any) -> np.ndarray:
        """Indices of choices, int32 `(rows,)`, checked row by row."""
        indices = np.asarray(as_array(y))
        if indices.dtype.kind not in "iuf":
            cure = "For a choice's own text: `[row.index(text) for row, text in zip(choices, texts)]`."
            raise TypeError(checks.message(self.owner, "y", "hold integers", indices.dtype, cure))
        indices, present = indices.reshape(-1), columns[1].astype(bool)
        if len(indices) != len(present):
            return indices  # reported with the lengths of the other columns
        for row, index in enumerate(indices):
            if not (index == np.floor(index) and 0 <= index < present.shape[1] and present[row, int(index)]):
                received = f"{index} in row {row}, which has {present[row].sum()} choices"
                raise ValueError(checks.row_message(self.owner, LABEL_RULE, received))
        return indices.astype(np.int32)

    def encode(self, x: Columns, y: Tensor | None = None, sample_weight: Tensor | None = None) -> tuple[Any, ...]:
        """One batch as ids `(batch, choices, sequence)`, labels and weights, in graph."""
        prompts, choices = x
        if isinstance(choices, tf.RaggedTensor):
            choices = choices.to_tensor(default_value="")
        present = tf.not_equal(choices, "")  # [B, choices]
        counts = tf.range(1, tf.shape(choices)[1] + 1)
        widest = tf.reduce_max(tf.where(present, counts, 0))  # of this batch; columns are as wide as the widest row
        if y is not None:
            y = tf.cast(y, tf.int32)
            is_label = tf.one_hot(y, widest, on_value=True, off_value=False) & present[:, :widest]
            message = [f"`{self.owner}`: {LABEL_RULE}. Received: ", y]
            y = check_in_graph(y, tf.reduce_all(tf.reduce_any(is_label, axis=-1)), message)
        return without_none(_ids_of_choices(self.bucketed(), prompts, choices[:, :widest]), y, sample_weight)

    def before_cut(self, x: Columns) -> None:
        """None: the row with the most choices decides how many each row has."""

    def read_together(self, columns: Any) -> Any:
        """Each prompt with each of its choices."""
        return pairs_of_rows(columns)

    def outputs(self, columns: Any, run: Callable[..., Any]) -> np.ndarray:
        """The scores of a block of rows; only choices that are present are computed, each as a row of a step."""
        preprocessor = self.bucketed()
        ids = on_host(preprocessor, pairs_of_rows(columns))
        scores = np.full(columns[1].shape, self.fill_value, np.float32)

        def with_one_choice(ids: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {name: values[:, np.newaxis] for name, values in ids.items()}  # [pairs, 1, S]

        scores[columns[1].astype(bool)] = run(ids, preprocessor, finish=with_one_choice)[:, 0]
        return scores

    def tokens(self, *texts: Tensor) -> dict[str, Any]:
        """The ids for a batch of prompts and choices, in graph."""
        return traced_once(self._tokens, *texts)

    def _tokens(self, prompts: Tensor, choices: Tensor) -> dict[str, Any]:
        return _ids_of_choices(self.preprocessor, prompts, choices)


def columns_of_rows(
    owner: str, texts: Any, rows: Any, *, names: tuple[str, str, str], first_row: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Texts `(rows,)`, and beside each a row of texts `(rows, texts)`, checked and padded with empty strings.

    Args:
        owner: the class to name in errors.
        texts: a column of strings.
        rows: a column of lists of strings, or an array or tensor `(rows, texts)`.
        names: what a text is, its plural, and what each text of its row is; for errors.
        first_row: the index of the first row, for errors.
    """
    one, several, other = names
    texts = as_columns(owner, texts, first_row=first_row)
    for row, own in enumerate(rows if isinstance(rows, list | tuple) else (), start=first_row):
        if isinstance(own, str | bytes):
            rule = f"`{other}s` must hold a list of strings for each {one}"
            raise TypeError(f"`{owner}`: {rule}. Received: {own!r} in row {row}.")
    table = as_table(owner, rows, first_row=first_row)
    if len(texts) != len(table):
        received = f"{len(texts)} {several} and {len(table)} rows of {other}s"
        raise ValueError(checks.row_message(owner, f"every {one} must have its row of {other}s", received))
    has_any = table.astype(bool).any(axis=1)
    if not has_any.all():
        row = first_row + int(np.argmin(has_any))
        rule = f"every row must have a {other} that is not empty"
        raise ValueError(f"`{owner}`: {rule}. Received: none in row {row}.")
    return texts, table


def pairs_of_rows(columns: Any) -> Any:
    """Each text with each of its row that is not empty."""
    texts, rows = columns
    present = rows.astype(bool)
    return np.asarray(texts)[np.nonzero(present)[0]], rows[present]


def _ids_of_choices(preprocessor: TextLayer, prompts: Tensor, choices: Tensor) -> dict[str, tf.Tensor]:
    """Each prompt with each of its choices as ids `(batch, choices, sequence)`; an absent choice is all padding."""
    shape = tf.shape(choices)
    ids = preprocessor((tf.repeat(prompts, shape[1]), tf.reshape(choices, [-1])))  # [B * choices, S]
    present = tf.reshape(tf.not_equal(choices, ""), [-1, 1])
    padding = {"token_ids": preprocessor.tokenizer.pad_id, "segment_ids": 0, "padding_mask": 0}
    ids = {key: tf.where(present, values, padding[key]) for key, values in ids.items()}
    return {key: tf.reshape(values, tf.concat([shape, tf.shape(values)[1:]], 0)) for key, values in ids.items()}
