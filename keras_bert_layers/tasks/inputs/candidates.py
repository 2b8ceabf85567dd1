"""Pairs of a query and a document with a relevance, and queries with a row of graded candidates each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Columns, Rows, Tensor
from keras_bert_layers.losses.ranking import ABSENT_GRADE, RankingLoss
from keras_bert_layers.tasks.feeding.columns import as_array, column_values, first_part, is_pair, without_none
from keras_bert_layers.tasks.inputs.choices import columns_of_rows, pairs_of_rows
from keras_bert_layers.tasks.inputs.texts import TextInputs


class RelevanceInputs(TextInputs):
    """Pairs of texts, or queries with rows of candidates, whose labels are grades `(rows, candidates)`.

    The candidates of a query are rows of the model one after the other, as many for each query of a batch: short rows
    are padded with empty strings, whose grade is `ABSENT_GRADE`. A row of outputs has one logit per candidate.
    """

    loss_kind = RankingLoss

    def counts_rows(self, x: Rows) -> bool:
        """Rows of candidates have more rows of ids than of labels, which `tf.distribute` would cut alike."""
        return self.is_raw(x) and _has_candidates(x)

    def columns(self, x: Rows, *, first_row: int = 0) -> Any:
        """Pairs as for all texts; or queries `(rows,)` and candidates `(rows, candidates)`, checked row by row."""
        if not _has_candidates(x):
            return super().columns(x, first_row=first_row)
        return columns_of_rows(self.owner, *x, names=("query", "queries", "candidate"), first_row=first_row)

    def check_dataset(self, dataset: tf.data.Dataset) -> None:
        """Refuses a dataset that yields neither batches of pairs nor of queries and candidates; ValueError."""
        x = first_part(dataset)
        if not _has_candidates(x) or [(side.dtype, side.shape.rank) for side in x] != [(tf.string, 1), (tf.string, 2)]:
            super().check_dataset(dataset)

    def answer_columns(self, x: Rows) -> list[Any]:
        """Two columns of texts."""
        if _has_candidates(x):
            cure = "`rank` orders the candidates of one query, and `predict` gives the logits of rows of candidates."
            raise ValueError(checks.message(self.owner, "x", "be pairs of texts", checks.Shown("lists of texts"), cure))
        return super().answer_columns(x)

    def labels(self, columns: Any, y: Any) -> Any:
        """Relevances of pairs, or grades `(rows, candidates)`, float32, checked row by row."""
        if not _are_rows(columns):
            return super().labels(columns, y)
        present = columns[1].astype(bool)
        y = as_array(y)
        y = y.numpy() if hasattr(y, "numpy") else y
        if len(y) != len(present):
            return y  # reported with the lengths of the other columns
        grades = np.full(present.shape, ABSENT_GRADE, np.float32)
        for row, (own, given) in enumerate(zip(present, map(np.asarray, y), strict=True)):
            size = int(np.flatnonzero(own).max()) + 1
            if given.ndim != 1 or len(given) not in (size, len(own)) or given.dtype.kind not in "biuf":
                received = f"{given.tolist()} in row {row} of {size} candidates"
                raise ValueError(checks.row_message(self.owner, "every candidate must have a grade", received))
            grades[row, : len(given)] = np.where(own[: len(given)], given, ABSENT_GRADE)
        self._labels.check_grades(grades, present, 1.0 if self.loss is None else float("inf"))
        return grades

    def raw_labels(self, columns: Columns, y: Any) -> Any:
        """The same; grades as ragged rows, as batches of a generator may differ in their width."""
        labels = self.labels(columns, y)
        return tf.RaggedTensor.from_tensor(labels) if _are_rows(columns) else labels

    def encode(self, x: Any, y: Tensor | None = None, sample_weight: Tensor | None = None) -> tuple[Any, ...]:
        """One batch of `(ids, labels, weights)`, in graph; the candidates of a query one after the other."""
        if not isinstance(x, tuple) or len(x[1].shape) == 1:
            return super().encode(x, y, sample_weight)
        candidates = _filled(x[1], "")
        present = tf.not_equal(candidates, "")  # [B, candidates]
        queries = tf.where(present, x[0][:, tf.newaxis], "")  # so that what is absent costs little
        (ids,) = super().encode((tf.reshape(queries, [-1]), tf.reshape(candidates, [-1])))
        if y is not None:
            y = tf.where(present, tf.cast(_filled(y, ABSENT_GRADE), tf.float32), ABSENT_GRADE)
        return without_none(ids, y, sample_weight)

    def read_together(self, columns: Columns) -> Any:
        """Each query with each of its candidates."""
        return pairs_of_rows(columns) if _are_rows(columns) else columns

    def outputs(self, columns: Any, run: Callable[..., Any]) -> np.ndarray:
        """The logits of a block of pairs, or of candidates; only those that are present are computed."""
        found = super().outputs(self.read_together(columns), run)
        if not _are_rows(columns):
            return found
        logits = np.full(columns[1].shape, self.fill_value, np.float32)
        logits[columns[1].astype(bool)] = found[:, 0]
        return logits


def _has_candidates(x: Any) -> bool:
    """Whether `x` is, or yields, queries with several texts each."""
    if not is_pair(x) or len(x := first_part(x)) != 2:
        return False
    texts = column_values(x[1])
    if isinstance(texts, list | tuple | np.ndarray):
        return len(texts) > 0 and isinstance(texts[0], list | tuple | np.ndarray)
    return hasattr(texts, "shape") and texts.shape.rank == 2


def _are_rows(columns: Any) -> bool:
    """Whether columns, as `columns` gives them, are rows of candidates."""
    return isinstance(columns, tuple) and columns[1].ndim == 2


def _filled(rows: Any, value: str | float) -> Any:
    """Ragged rows, padded with a value; a tensor unchanged."""
    return rows.to_tensor(default_value=value) if isinstance(rows, tf.RaggedTensor) else rows
