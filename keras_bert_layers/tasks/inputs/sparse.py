"""Texts that are compared by their sparse vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_bert_layers._internal.types import Columns
from keras_bert_layers.tasks.feeding.columns import is_pair
from keras_bert_layers.tasks.inputs.comparisons import ComparedInputs
from keras_bert_layers.tasks.inputs.inputs import Inputs
from keras_bert_layers.tasks.inputs.sparse_vectors import SparseVectors, dot, sparse_rows
from keras_bert_layers.tasks.objectives.contrastive import refuse_negatives


class SparseInputs(ComparedInputs):
    """The same data as of `ComparedInputs`; a row of outputs is a `SparseRow`, or the dot product of a pair.

    The outputs of a step become sparse before the next step, so that no more than one batch has the whole vocabulary.
    """

    #: How many weights of a text are kept, the largest ones; None for all.
    max_active_dims: int | None = None
    #: The part of the task that queries go through; None for the whole task.
    query_part: str | None = None
    answer_fill = 0

    def outputs(self, columns: Columns, run: Callable[..., Any]) -> np.ndarray:
        """The sparse rows of a block of texts, or the dot products of a block of pairs."""
        refuse_negatives(self.owner, columns)
        run = functools.partial(run, keep=functools.partial(sparse_rows, most=self.max_active_dims))
        if not isinstance(columns, tuple):
            return Inputs.outputs(self, columns, run)
        if self.query_part is None:
            rows = Inputs.outputs(self, columns, run)
            queries, documents = rows[0::2], rows[1::2]
        else:
            first = self.prompted(self.prompt, self.query_part)
            queries, documents = Inputs.outputs(first, columns[0], run), Inputs.outputs(self, columns[1], run)
        return np.array([dot(*pair) for pair in zip(queries, documents, strict=True)], np.float32)

    def join(self, blocks: list[Any]) -> Any:
        """`SparseVectors`, or dot products."""
        joined = np.concatenate(blocks)
        return SparseVectors.of(list(joined), self.vector_dim) if joined.dtype == object else joined

    def empty(self, x: Any, outputs: Any) -> Any:
        """No vectors, or no dot products."""
        return np.zeros(0, np.float32) if is_pair(x) else SparseVectors.of([], self.vector_dim)
