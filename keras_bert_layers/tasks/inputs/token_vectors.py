"""`TokenVectors`: a vector for each token of texts, and scores by the best token for each token of a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.losses.in_batch import unit


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """Vectors of the tokens of texts; a sequence of one array `(tokens, width)` for each text.

    `vectors[0]` is the array of the first text, without a copy; `vectors[rows]`, of a slice or an array, are the
    vectors of these texts.

    Args:
        vectors: float32 `(tokens, width)`, of all texts one after the other.
        row_starts: int64 `(texts + 1,)`, where each text begins, and the number of all tokens.

    Examples:
        >>> corpus = TokenVectors.of([np.eye(2), np.array([[-1, 0]])], 2)
        >>> corpus.shape, corpus[1].tolist(), corpus.scores(corpus[:1]).tolist()
        ((2, 2), [[-1.0, 0.0]], [[2.0, -1.0]])

    References:
        Khattab and Zaharia 2020, ColBERT, arXiv:2004.12832, section 3.3.
    """

    vectors: np.ndarray
    row_starts: np.ndarray

    @classmethod
    def of(cls, rows: Iterable[np.ndarray], width: int) -> TokenVectors:
        """The vectors of texts, each `(tokens, width)`."""
        rows = [np.zeros((0, width), np.float32), *rows]
        return cls(np.concatenate(rows).astype(np.float32, copy=False), np.cumsum([*map(len, rows)], dtype=np.int64))

    @property
    def shape(self) -> tuple[int, int]:
        """`(texts, width)`."""
        return len(self), self.vectors.shape[1]

    def __len__(self) -> int:
        return len(self.row_starts) - 1

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, rows: Any) -> Any:
        chosen = np.arange(len(self))[rows]
        if isinstance(chosen, np.ndarray):
            return self.of([self[row] for row in chosen], self.shape[1])
        return self.vectors[slice(*self.row_starts[chosen : chosen + 2])]

    def pooled(self, factor: float) -> TokenVectors:
        """Fewer vectors: those of each text that are most similar are replaced by their mean, scaled to length 1.

        Of a text's `n` vectors the first stays, that of `[CLS]`; the others become `(n - 1) // factor`, at least one.
        They are grouped by Ward's method on 1 minus the cosine, in the order of the first vector of each group.

        Args:
            factor: 1 or more; 1 pools nothing. The vectors must have length 1.

        References:
            Clavié, Chaffin and Adams 2024, Reducing the footprint of multi-vector retrieval, arXiv:2409.14683.
        """
        checks.at_least_one("TokenVectors", "factor", factor)
        return self.of([pooled_tokens(text, factor) for text in self], self.shape[1])

    def scores(self, queries: TokenVectors) -> np.ndarray:
        """The score of each text for each query (MaxSim), float32 `(queries, texts)`.

        It is the sum, over the tokens of the query, of the largest dot product with a token of the text; 0 for a query
        or a text without tokens.

        Raises:
            ValueError: queries of another width.
        """
        if queries.shape[1] != self.shape[1]:
            raise ValueError(checks.message("TokenVectors", "queries", f"be {self.shape[1]} wide", queries.shape[1]))
        numbers = np.repeat(np.arange(len(queries)), np.diff(queries.row_starts))
        found = np.zeros((len(queries), len(self)), np.float32)
        for number, text in enumerate(self):
            best = (queries.vectors @ text.T).max(axis=1) if len(text) else np.zeros(len(numbers))
            found[:, number] = np.bincount(numbers, best, minlength=len(queries))
        return found


def token_rows(padded: np.ndarray) -> np.ndarray:
    """The vectors of each row of `(rows, tokens, width)` that are not zero, in an array of objects."""
    found = np.empty(len(padded), object)
    for number, row in enumerate(padded):
        found[number] = row[row.any(axis=-1)]
    return found


def pooled_tokens(vectors: np.ndarray, factor: float) -> np.ndarray:
    """Some of the vectors `(tokens, width)` of one text in the place of all; see `TokenVectors.pooled`."""
    others = vectors[1:]
    if (number := max(1, int(len(others) // factor))) >= len(others):
        return vectors
    sums, sizes = others.copy(), np.ones(len(others))
    squares = np.clip(1 - others @ others.T, 0, 2).astype(np.float64) ** 2
    np.fill_diagonal(squares, np.inf)
    for _ in range(len(others) - number):
        kept, gone = sorted(divmod(int(squares.argmin()), len(others)))
        both = sizes[kept] + sizes[gone]  # next, what Lance and Williams' formula has for Ward's method
        row = (sizes + sizes[kept]) * squares[kept] + (sizes + sizes[gone]) * squares[gone]
        row = (row - sizes * squares[kept, gone]) / (sizes + both)
        row[kept] = np.inf
        squares[kept], squares[:, kept] = row, row
        squares[gone], squares[:, gone] = np.inf, np.inf
        sums[kept], sizes[kept], sizes[gone] = sums[kept] + sums[gone], both, 0
    return np.concatenate([vectors[:1], unit(sums[sizes > 0])])
