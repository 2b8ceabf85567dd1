"""Queries with documents that answer them, for two encoders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks import _contrastive as contrastive
from keras_bert_layers.tasks.inputs import _columns as columns_of
from keras_bert_layers.tasks.inputs.inputs import Inputs, without_none

SIDES = QUERY, DOCUMENT = "query", "document"


class QueryInputs(Inputs):
    """Queries and documents, with hard negatives or without; `predict` takes single queries too.

    A row of outputs is the vector of a query, or the score of a query and a document.

    Args:
        owner: the task's class, for errors.
        preprocessor: the `BertPreprocessor` of the queries, or None.
        document_preprocessor: the one of the documents; None for the same.
        prompts: what is put before every query and every document.
    """

    def __init__(self, owner: str, preprocessor: Any, document_preprocessor: Any, prompts: Mapping[str, str]):
        super().__init__(owner, preprocessor, most_texts=3, prompt=prompts.get(QUERY, ""))
        self._prompts = prompts
        self.document_preprocessor = document_preprocessor

    def side(self, side: str) -> Inputs:
        """Single texts for one of the two encoders, `"query"` or `"document"`."""
        own = self.document_preprocessor if side == DOCUMENT else None
        prompt = self._prompts.get(side, "")
        made = self.made_once(Inputs, self.owner, own or self.preprocessor, most_texts=1, part=side, prompt=prompt)
        made.cuts = self.cuts
        return made

    def holds_ids(self, x: Any) -> bool:
        """Whether `x` is, or yields, the ids of both encoders or of one."""
        return columns_of.has_key(x, QUERY) or super().holds_ids(x)

    def labels(self, columns: Any, y: Any) -> Any:
        """Refused: a row itself holds what belongs together."""
        cure = (
            "Queries and their documents are one tuple: `fit((queries, documents))`. In `validation_data` and from a "
            "dataset: `((queries, documents),)`."
        )
        raise ValueError(checks.message(self.owner, "y", "be None", type(y), cure))

    def makes_labels(self, x: Any) -> bool:
        """Each query's own document is its label."""
        return True

    def check_labels(self, x: Any, y: Any) -> None:
        """Refuses single texts, which nothing can be learnt from; ValueError."""
        if not columns_of.is_pair(x):
            rule = "be a tuple of queries, documents and, if there are any, negatives"
            raise ValueError(checks.message(self.owner, "x", rule, type(x)))

    def encode(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of `(ids, labels, weights)`, in graph: the documents of all rows, then all first negatives."""
        if y is not None:
            self.labels(x, y)
        if not isinstance(x, tuple):
            return self.side(QUERY).encode(x)
        texts = contrastive.joined(x)  # [B, 2 + negatives]
        (queries,) = self.side(QUERY).encode(texts[:, 0])
        (documents,) = self.side(DOCUMENT).encode(contrastive.column_by_column(texts[:, 1:]))
        labels = {contrastive.TEXTS: contrastive.text_ids(texts)}
        return without_none({QUERY: queries, DOCUMENT: documents}, labels, sample_weight)

    def read_together(self, columns: Any) -> Any:
        """All texts, one by one."""
        return columns_of.as_one_column(columns)

    def outputs(self, columns: Any, run: Callable[..., Any]) -> np.ndarray:
        """The vectors of a block of queries, or the scores of a block of pairs."""
        contrastive.refuse_negatives(self.owner, columns)
        if not isinstance(columns, tuple):
            return self.side(QUERY).outputs(columns, run)

        def half(*arguments: Any, **options: Any) -> Any:
            return run(*arguments, **options, share=0.5)

        vectors = [self.side(side).outputs(texts, half) for side, texts in zip(SIDES, columns, strict=True)]
        return np.sum(vectors[0] * vectors[1], axis=-1)

    def empty(self, x: Any, outputs: Any) -> np.ndarray:
        """No vectors, or no scores."""
        return np.sum(outputs[QUERY], axis=-1) if columns_of.is_pair(x) else outputs[QUERY]
