"""Queries and documents that are compared by the vectors of their tokens."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from keras_bert_layers._internal.types import Columns, Outputs, Rows, Tensor
from keras_bert_layers.losses.vectors import DistillKLDiv, MarginMSE
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.feeding.columns import is_pair
from keras_bert_layers.tasks.inputs.comparisons import QUERY, SIDES, QueryInputs
from keras_bert_layers.tasks.inputs.inputs import Inputs
from keras_bert_layers.tasks.inputs.token_vectors import TokenVectors, token_rows
from keras_bert_layers.tasks.objectives.contrastive import refuse_negatives


class TokenInputs(Inputs):
    """Texts of one side; a row of outputs is the vectors of its tokens, `(tokens, width)`."""

    width = 0  #: The width of the vectors.

    def outputs(self, columns: Columns, run: Callable[..., Any]) -> np.ndarray:
        """The vectors of each text, in an array of objects; those of a step lose their padding before the next."""
        return super().outputs(columns, functools.partial(run, keep=token_rows))

    def join(self, blocks: list[Any]) -> TokenVectors:
        """All texts."""
        return TokenVectors.of(list(np.concatenate(blocks)), self.width)

    def empty(self, x: Rows, outputs: Outputs) -> TokenVectors:
        """No texts."""
        return TokenVectors.of([], self.width)


class TokenQueryInputs(QueryInputs):
    """The data of `QueryInputs`; a row of outputs is the vectors of a query, or the score of a pair.

    Args:
        owner: the task's class, for errors.
        preprocessor: a `BertPreprocessor`, or None.
        prompts: what is put before every query and every document.
        width: the width of the vectors.
    """

    #: The most tokens of a query and of a document; None for those of the preprocessor.
    lengths: Mapping[str, int | None] = MappingProxyType(dict.fromkeys(SIDES))
    #: Whether every query has as many ids as a query may have, the last ones of padding.
    expands = False
    loss_kind = (DistillKLDiv, MarginMSE)  # type: ignore[assignment]
    answer_fill = 0

    def __init__(self, owner: str, preprocessor: TextLayer | None, prompts: Mapping[str, str], width: int):
        super().__init__(owner, preprocessor, None, prompts)
        self.width = width

    def side(self, side: str) -> Inputs:
        """Single texts, `"query"` or `"document"`."""
        prompt = self._prompts.get(side, "")
        preprocessor = self.made_once(self._preprocessor_of, self.preprocessor, side)
        made = self.made_once(TokenInputs, self.owner, preprocessor, most_texts=1, part=side, prompt=prompt)
        made.cuts, made.width = self.cuts, self.width
        return made

    def _preprocessor_of(self, own: Any, side: str) -> BertPreprocessor:  # of this side, by its length
        padding = "max_length" if side == QUERY and self.expands else own.padding
        options = {"padding": padding, "truncation_side": own.truncation_side}
        return BertPreprocessor(own.tokenizer, self.lengths[side] or own.max_length, **options)

    def ids(self, *texts: Tensor) -> dict[str, Any]:
        """The ids of queries."""
        return self.side(QUERY).ids(*texts)

    def outputs(self, columns: Columns, run: Callable[..., Any]) -> np.ndarray:
        """The vectors of a block of queries, or the scores of a block of pairs."""
        refuse_negatives(self.owner, columns)
        if not isinstance(columns, tuple):
            return self.side(QUERY).outputs(columns, run)
        half = functools.partial(run, share=0.5)
        rows = [self.side(side).outputs(texts, half) for side, texts in zip(SIDES, columns, strict=True)]
        of = functools.partial(TokenVectors.of, width=self.width)
        return np.array([of([other]).scores(of([own]))[0, 0] for own, other in zip(*rows, strict=True)], np.float32)

    def join(self, blocks: list[Any]) -> Any:
        """`TokenVectors`, or scores."""
        joined = np.concatenate(blocks)
        return TokenVectors.of(list(joined), self.width) if joined.dtype == object else joined

    def empty(self, x: Rows, outputs: Outputs) -> Any:
        """No vectors, or no scores."""
        return np.zeros(0, np.float32) if is_pair(x) else TokenVectors.of([], self.width)
