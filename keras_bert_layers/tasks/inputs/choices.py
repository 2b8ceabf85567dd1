"""Prompts, each with choices of which one is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers.tasks.inputs import _arrays as arrays
from keras_bert_layers.tasks.inputs import _choices as choices_of
from keras_bert_layers.tasks.inputs.inputs import TEXT, Inputs, without_none


class ChoiceInputs(Inputs):
    """Prompts and choices; labels are indices of choices, and a row of outputs has one score a choice.

    Args:
        owner: the task's class, for errors.
        preprocessor: a `BertPreprocessor`, or None.
        fill_value: the score of a choice that is absent.
    """

    def __init__(self, owner: str, preprocessor: Any, *, fill_value: float):
        super().__init__(owner, preprocessor)
        self.fill_value = fill_value

    @property
    def text_inputs(self) -> Mapping[str, Any]:
        """`prompt` `(batch,)` and `choices` `(batch, choices)`, short rows padded with empty strings."""
        return {"prompt": TEXT, "choices": ((None, None), "string")}

    def columns(self, x: Any, *, first_row: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Prompts `(rows,)` and choices `(rows, choices)`, checked row by row, padded with empty strings."""
        return choices_of.as_columns(self.owner, x, first_row=first_row)

    def check_dataset(self, dataset: Any) -> None:
        """Refuses a dataset that does not yield batches of prompts and choices; ValueError."""
        choices_of.check_dataset(self.owner, dataset)

    def labels(self, columns: Any, y: Any) -> np.ndarray:
        """Indices of choices, int32 `(rows,)`, checked row by row."""
        return choices_of.checked_indices(self.owner, y, columns[1])

    def encode(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch as ids `(batch, choices, sequence)`, labels and weights, in graph."""
        prompts, choices = x
        if isinstance(choices, tf.RaggedTensor):
            choices = choices.to_tensor(default_value="")
        present = tf.not_equal(choices, "")  # [B, choices]
        counts = tf.range(1, tf.shape(choices)[1] + 1)
        widest = tf.reduce_max(tf.where(present, counts, 0))  # of this batch; columns are as wide as the widest row
        choices = choices[:, :widest]
        if y is not None:
            y = choices_of.checked_in_graph(y, present[:, :widest])
        return without_none(choices_of.ids_of_choices(self.bucketed(), prompts, choices), y, sample_weight)

    def outputs(self, columns: Any, run: Callable[..., Any]) -> np.ndarray:
        """The scores of a block of rows; only choices that are present are computed, each as a row of a step."""
        prompts, choices = columns
        present = choices_of.present(choices)
        preprocessor = self.bucketed()
        ids = arrays.on_host(preprocessor, (prompts[np.nonzero(present)[0]], choices[present]))
        scores = np.full(choices.shape, self.fill_value, np.float32)
        scores[present] = run(ids, preprocessor, finish=_with_one_choice)[:, 0]
        return scores

    def tokens(self, *texts: Any) -> dict[str, Any]:
        """The ids for a batch of prompts and choices, in graph."""
        return traced_once(self._ids_of_choices, *texts)

    def _ids_of_choices(self, prompts: Any, choices: Any) -> dict[str, Any]:
        return choices_of.ids_of_choices(self.preprocessor, prompts, choices)


def _with_one_choice(ids: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Ids `(pairs, sequence)` as `(pairs, 1, sequence)`."""
    return {name: values[:, np.newaxis] for name, values in ids.items()}
