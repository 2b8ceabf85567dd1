"""The search of an ONNX file: operations from the vector of a query to documents, as those of a SavedModel.

Axes as in `saved_model_graph`. Queries run one at a time, so that memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_bert_layers.export.onnx import FLOAT, INT8, INT32, INT64, STRING, UINT16, Answer, Graph, Tensor
from keras_bert_layers.export.search import corpus as names

#: Scores texts again: queries and texts `[pairs]` to `[pairs]`.
Rerank = Callable[[Tensor, Tensor], Tensor]

# ONNX counts no bits: words of 16 are looked up in a table.
_WORD = 16
# What one byte may be, and what follows the last one of a string.
_BYTES = [*(bytes([byte]) for byte in range(256)), b""]


class OnnxGraph:
    """Finds the documents for queries.

    Args:
        graph: what operations are added to.
        arrays: the corpus, which becomes constants with the names that `names.PREFIX` begins.
        top_k: how many documents to find.
        candidates: how many texts get an exact score, at least `top_k`.
        rerank: scores the best texts again; None does not.
        reranked: how many texts it scores.
    """

    def __init__(
        self,
        graph: Graph,
        arrays: Mapping[str, Any],
        *,
        top_k: int,
        candidates: int,
        rerank: Rerank | None,
        reranked: int,
    ):
        self._graph = graph
        self._arrays = {name: graph.named(names.PREFIX + name, array) for name, array in onnx_arrays(arrays).items()}
        self._top_k, self._candidates, self._rerank = top_k, candidates, rerank
        self._kept = top_k if rerank is None else reranked

    def answers(self, queries: Tensor, vectors: Tensor) -> dict[str, Answer]:
        """`id`, `text` and `score` of queries `[Q]` and their vectors `[Q, W]`."""

        def step(carried: Tensor, query: Tensor, vector: Tensor) -> tuple[Tensor, ...]:
            documents, rows, scores = self._found(query, vector)
            found = self._values(names.IDS, documents), self._values(names.TEXTS, rows), scores
            return carried, *(column.column(0) for column in found)

        nothing = self._graph.constant(np.zeros((1, 1), np.float32))
        found = self._graph.scan(step, nothing, queries.column(0), vectors.column(0))
        shape = self._graph.concat([queries.shape(), self._num_found()])
        return {
            name: Answer(tensor.reshape(shape), (None, None))
            for name, tensor in zip(("id", "text", "score"), found, strict=True)
        }

    def _num_found(self) -> Tensor:
        """How many documents are found, int64 `[1]`."""
        return (self._arrays[names.DOCUMENTS].shape() - 1).minimum([self._top_k])

    def _values(self, name: str, rows: Tensor) -> Tensor:
        """Some texts or ids, [D]. Strings are made of their bytes: as a constant, each takes 32 bytes more."""
        values, starts, graph = self._arrays[name], self._arrays.get(_STARTS + name), self._graph
        if starts is None:
            return values.take(rows)
        first = starts.take(rows).column()
        sizes = starts.take(rows + 1).column() - first
        longest = graph.concat([sizes.reshape(-1), graph.constant([0])]).reduced("Max")
        powers = graph.constant([2**power for power in range(32)])
        halvings = (powers < longest).cast(INT64).reduced("Sum")
        place = graph.range(powers.take(halvings))
        found = values.take((first + place).minimum(values.size() - 1)).cast(INT32)
        pieces = graph.constant(_BYTES, STRING).take((place < sizes).where(found, len(_BYTES) - 1))

        def joined(pieces: Tensor) -> Tensor:
            pairs = pieces.reshape(rows.size(), -1, 2)
            return graph.add("StringConcat", pairs.take(0, axis=2), pairs.take(1, axis=2))

        return graph.repeat(halvings, joined, pieces).reshape(-1)

    def _found(self, query: Tensor, vector: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The documents, the rows of their texts and their scores, [D] each, of `[1]` and `[1, W]`."""
        found = self._approximate(vector)
        rows, _ = self._best(self._best(found, self._candidates)[1], self._candidates, largest=False)  # [C], in order
        # Vectors that are looked up and multiplied would be in memory twice, as ONNX Runtime packs what it multiplies.
        exact = found.take(rows) if names.FLOATS in self._arrays else self._exact(vector, rows)
        scores, places = self._best(exact, self._kept)
        rows = rows.take(places)
        if self._rerank is not None:
            texts = self._values(names.TEXTS, rows)
            scores = self._rerank(self._graph.add("Expand", query, texts.shape()), texts)
        return self._documents(rows, scores)

    def _best(self, values: Tensor, count: int, *, largest: bool = True) -> list[Tensor]:
        """The best of a vector, at most so many, and their places; of equal ones the first."""
        return self._top(values, values.shape().minimum([count]), largest=largest)

    def _top(self, values: Tensor, count: Tensor, *, largest: bool = True) -> Any:
        return self._graph.add("TopK", values, count, outputs=[values.kind, INT64], largest=int(largest))

    def _approximate(self, vector: Tensor) -> Tensor:
        """The approximate scores of all rows, [R]."""
        if names.FLOATS in self._arrays:
            return self._graph.add("Gemm", vector, self._arrays[names.FLOATS], transB=1).reshape(-1)
        if names.BITS in self._arrays:
            differ = self._graph.add("BitwiseXor", self._arrays[names.BITS], self._packed_signs(vector))
            return self._graph.constant(_NEGATIVE_COUNTS).take(differ.cast(INT32)).reduced("Sum", 1)
        scale = self._graph.add("Abs", vector).reduced("Max").maximum(1e-12) / 127
        rounded = self._graph.add("Round", vector / scale).cast(INT8).reshape(-1, 1)
        found = self._graph.add("MatMulInteger", self._arrays[names.HIGH], rounded, kind=INT32)
        return found.reshape(-1).cast(FLOAT) * self._arrays[names.SCALES]

    def _packed_signs(self, vector: Tensor) -> Tensor:
        """As `corpus.packed_signs`, uint16 `[1, words]`."""
        powers = self._graph.constant((2.0 ** np.arange(_WORD)).astype(np.float32)).column(1)
        width = self._arrays[names.BITS].size(1) * _WORD
        pads = self._graph.concat([self._graph.constant([0, 0, 0]), (width - vector.size(1)).column(0)])
        bits = self._graph.add("Pad", (vector > 0).cast(FLOAT), pads)
        return (bits.reshape(1, -1, _WORD) @ powers).reshape(1, -1).cast(UINT16)

    def _exact(self, vector: Tensor, rows: Tensor) -> Tensor:
        """The scores of rows, [C], by numbers of 16 bits."""
        high, low, scales = (self._arrays[name].take(rows) for name in (names.HIGH, names.LOW, names.SCALES))
        return ((high.cast(FLOAT) * 256 + low.cast(FLOAT)) * vector).reduced("Sum", 1) * scales

    def _documents(self, rows: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best documents with these texts, their texts' rows and their scores; of equal scores the first ones."""
        starts, documents = self._arrays[names.ROW_STARTS], self._arrays[names.DOCUMENTS]
        first, last = starts.take(rows).column(), documents.size() - 1
        counts = starts.take(rows + 1).column() - first
        places = self._graph.range(counts.reduced("Max").maximum(1).minimum(self._top_k))
        is_there = places < counts  # [C, documents of a text]
        found = is_there.where(documents.take((first + places).minimum(last)), last).reshape(-1)
        rows = is_there.where(rows.column(), 0).reshape(-1)
        scores = is_there.where(scores.column(), -np.inf).reshape(-1)
        found, order = self._top(found, found.shape(), largest=False)
        scores, best = self._top(scores.take(order), self._num_found())
        return found.take(best), rows.take(order.take(best)), scores


_STARTS = "starts_of_"
_NEGATIVE_COUNTS = -np.array([number.bit_count() for number in range(2**_WORD)], np.float32)


def onnx_arrays(arrays: Mapping[str, Any]) -> names.Arrays:
    """The arrays of a corpus in the types that the operations read; strings as their bytes, and where each begins."""
    found = dict(arrays)
    for name in (names.TEXTS, names.IDS):
        if arrays[name].dtype == object:
            found[name] = np.frombuffer(b"".join(arrays[name]) + b"\0", np.uint8)
            found[_STARTS + name] = np.cumsum([0, *map(len, arrays[name])])
    for name in (names.DOCUMENTS, names.ROW_STARTS):
        found[name] = arrays[name].astype(np.int64)
    if names.BITS in arrays:
        found[names.BITS] = arrays[names.BITS].astype("<i8").view("<u2").astype(np.uint16)
    return found
