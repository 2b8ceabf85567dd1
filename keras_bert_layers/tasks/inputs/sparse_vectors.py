"""`SparseVectors`: the tokens of the vocabulary that texts have a weight for, and the search in them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Shape
from keras_bert_layers.export.search.corpus import Postings
from keras_bert_layers.preprocessing.tokenizer import Tokenizer

#: The ids of a text's tokens, int32 `(active,)`, and their weights, float32 `(active,)`, the largest first.
SparseRow = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class SparseVectors:
    """Vectors over the vocabulary, of which only the weights above 0 are kept; a sequence of one pair for each text.

    `vectors[0]` is a pair of arrays, `(token_ids, weights)`, the largest weight first, and of equal weights the lower
    id first; `vectors[rows]`, of a slice or an array, are the vectors of these rows. The arrays are those of
    `scipy.sparse.csr_matrix((weights, token_ids, row_starts), shape=vectors.shape)`.

    Args:
        token_ids: int32 `(values,)`, of all rows one after the other.
        weights: float32 `(values,)`.
        row_starts: int64 `(rows + 1,)`, where each row begins, and the number of all values.
        vocabulary_size: the width of the vectors.

    Examples:
        >>> corpus = SparseVectors.of([(np.array([2, 0]), np.array([3, 1])), (np.array([2]), np.array([2]))], 4)
        >>> corpus.shape, corpus[:1].scores(corpus).tolist()
        ((2, 4), [[10.0], [6.0]])
    """

    token_ids: np.ndarray
    weights: np.ndarray
    row_starts: np.ndarray
    vocabulary_size: int

    @classmethod
    def of(cls, rows: Sequence[SparseRow], vocabulary_size: int) -> SparseVectors:
        """The vectors of rows `(token_ids, weights)`."""
        ids = np.concatenate([np.zeros(0, np.int32), *(row[0] for row in rows)]).astype(np.int32, copy=False)
        weights = np.concatenate([np.zeros(0, np.float32), *(row[1] for row in rows)]).astype(np.float32, copy=False)
        starts = np.cumsum([0, *(len(row[0]) for row in rows)], dtype=np.int64)
        return cls(ids, weights, starts, vocabulary_size)

    @property
    def shape(self) -> Shape:
        """`(rows, vocabulary_size)`."""
        return len(self), self.vocabulary_size

    def __len__(self) -> int:
        return len(self.row_starts) - 1

    def __iter__(self) -> Iterator[SparseRow]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, rows: Any) -> Any:
        chosen = np.arange(len(self))[rows]
        if isinstance(chosen, np.ndarray):
            return self.of([self[row] for row in chosen], self.vocabulary_size)
        values = slice(*self.row_starts[chosen : chosen + 2])
        return self.token_ids[values], self.weights[values]

    def words(self, tokenizer: Tokenizer) -> list[list[tuple[str, float]]]:
        """The tokens of each row as strings, and their weights, the largest first; `""` for an id without a token."""
        names = np.array(tokenizer.readable_tokens(), object)
        names = np.append(names, [""] * max(0, self.vocabulary_size - len(names)))
        return [list(zip(names[ids].tolist(), weights.tolist(), strict=True)) for ids, weights in self]

    @functools.cached_property
    def by_token(self) -> Postings:
        """The row and the weight of all values in the order of their tokens, and where each token begins."""
        return Postings.of(self.token_ids, self.weights, self.row_starts, self.vocabulary_size)

    def scores(self, queries: SparseVectors) -> np.ndarray:
        """The dot product of each row with each query, float32 `(queries, rows)`; of the tokens that both have only.

        Raises:
            ValueError: queries of another vocabulary.
        """
        if queries.vocabulary_size != self.vocabulary_size:
            rule = f"have this `vocabulary_size`, {self.vocabulary_size}"
            raise ValueError(checks.message("SparseVectors", "queries", rule, queries.vocabulary_size))
        rows, weights, starts = self.by_token
        found = np.zeros((len(queries), len(self)), np.float32)
        for scores, (ids, own) in zip(found, queries, strict=True):
            counts = starts[ids + 1] - starts[ids]
            places = np.repeat(starts[ids + 1] - np.cumsum(counts), counts) + np.arange(counts.sum())
            scores[:] = np.bincount(rows[places], np.repeat(own, counts) * weights[places], minlength=len(self))
        return found


def sparse_rows(dense: np.ndarray, most: int | None = None) -> np.ndarray:
    """The `SparseRow` of each row of float32 `(rows, vocabulary_size)`, none below 0, in an array of objects.

    Args:
        dense: the weights.
        most: how many to keep of a row, the largest ones; None for all.
    """
    found = np.empty(len(dense), object)
    for number, row in enumerate(dense):
        ids = np.flatnonzero(row)
        # The bits of floats of one sign have the order of the floats: one sort of integers, from the largest weight.
        keys = np.sort((~row[ids].view(np.uint32)).astype(np.uint64) << np.uint64(32) | ids.astype(np.uint64))[:most]
        found[number] = keys.astype(np.uint32).astype(np.int32), (~(keys >> np.uint64(32)).astype(np.uint32)).view("f4")
    return found


def dot(first: SparseRow, second: SparseRow) -> float:
    """The dot product of two rows."""
    _, own, other = np.intersect1d(first[0], second[0], assume_unique=True, return_indices=True)
    return float(first[1][own] @ second[1][other])
