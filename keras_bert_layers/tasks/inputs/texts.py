"""Texts and pairs of texts, with one label per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Rows, Tensor
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.feeding.columns import as_array, is_pair
from keras_bert_layers.tasks.inputs.inputs import TEXT, Inputs


class TextInputs(Inputs):
    """Texts, or pairs of texts, with one label per row.

    Args:
        owner: the task's class, for errors.
        preprocessor: a `BertPreprocessor`, or None.
        labels: what the labels are; see `tasks.labels`.
        pairs: whether a row is a pair of texts; None takes both until the first `fit`, which decides.
    """

    def __init__(self, owner: str, preprocessor: TextLayer | None, labels: Any, *, pairs: bool | None = None):
        super().__init__(owner, preprocessor)
        self._labels = labels
        self.pairs = pairs

    @property
    def text_inputs(self) -> Mapping[str, Any]:
        """`text`, and `text_pair` where rows are pairs."""
        return {"text": TEXT, "text_pair": TEXT} if self.pairs else {"text": TEXT}

    @property
    def label_names(self) -> Sequence[str] | None:
        """The class names; None if there are none."""
        return getattr(self._labels, "class_names", None)

    def columns(self, x: Rows, *, first_row: int = 0) -> Any:
        """Texts, or pairs of them where rows are pairs, as checked columns."""
        columns = super().columns(x, first_row=first_row)
        self._check_kind(isinstance(columns, tuple))
        return columns

    def check_dataset(self, dataset: tf.data.Dataset) -> None:
        """Refuses a dataset of neither texts nor pairs, or of the other of the two; ValueError."""
        super().check_dataset(dataset)
        self._check_kind(self.are_pairs(dataset))

    def are_pairs(self, x: Rows) -> bool:
        """Whether rows have two texts."""
        return is_pair(x)

    def _check_kind(self, are_pairs: bool) -> None:
        if self.pairs is not None and are_pairs != self.pairs:
            wants, came = ("pairs of texts", "single texts") if self.pairs else ("single texts", "pairs of texts")
            raise ValueError(f"`{self.owner}`: this model takes {wants}. Received: {came}.")

    def answer_columns(self, x: Rows) -> list[Any]:
        """A column of strings for each of `text_inputs`."""
        if self.pairs is None and self.are_pairs(x):
            cure = "Set `task.pairs = True`, or give `pairs=True` where the task is made or loaded."
            raise ValueError(checks.message(self.owner, "pairs", "be True for answers to pairs of texts", None, cure))
        return super().answer_columns(x)

    def labels(self, columns: Any, y: Any) -> Any:
        """Labels as the loss takes them, checked row by row; tensors unchanged."""
        y = as_array(y)
        return self._labels.encode(y) if isinstance(y, np.ndarray) else y

    def class_weight(self, x: Rows, class_weight: Any, y: Any = None) -> Mapping[Any, float]:
        """Weights by class name or index, or `"balanced"` for the labels `y`, as weights by index."""
        return self._labels.class_weight(class_weight, None if y is None else self.labels(x, y))

    @contextmanager
    def fitting(self, x: Rows) -> Iterator[None]:
        """Decides by `x` whether rows are pairs or single texts; undone if the data are refused."""
        before = self.pairs
        if before is None and self.is_raw(x):
            self.pairs = self.are_pairs(x)
        try:
            yield
        except (TypeError, ValueError):
            self.pairs = before  # refused data do not decide what the model is for
            raise

    def encode(self, x: Rows, y: Tensor | None = None, sample_weight: Tensor | None = None) -> tuple[Any, ...]:
        """One batch of `(ids, labels, weights)`, in graph."""
        return super().encode(x, None if y is None else self._labels.encode_in_graph(y), sample_weight)
