"""The search of a SavedModel: TensorFlow operations from the vector of a query to documents.

Axes: Q queries, R rows of vectors (different texts), C candidates, D documents of an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.export.search import corpus as names

#: Scores texts again: queries and texts, strings `(pairs,)`, to float32 `(pairs,)`.
Rerank = Callable[[Any, Any], Any]

# Numbers that a step of a scan makes.
_STEP_NUMBERS = 2**18
# Rows of a step that are converted from 8 bits: as floats, they stay in the processor's cache.
_INT8_ROWS = 4096


class SavedModelGraph:
    """Finds the documents for queries. Its variables hold the corpus.

    Args:
        arrays: the corpus.
        top_k: how many documents to find.
        candidates: how many texts get an exact score, at least `top_k`.
        rerank: scores the best texts again; None does not.
        reranked: how many texts it scores.
    """

    #: Queries that are answered together, where none is scored again.
    most_queries = 32

    def __init__(self, arrays: Mapping[str, Any], *, top_k: int, candidates: int, rerank: Rerank | None, reranked: int):
        self._arrays = {
            name: tf.Variable(
                tf.constant(array.tolist(), tf.string) if array.dtype == object else array,
                shape=(None, *array.shape[1:]),
                trainable=False,
                name=names.PREFIX + name,
            )
            for name, array in arrays.items()
        }
        self._top_k, self._candidates, self._rerank = top_k, candidates, rerank
        self._kept = top_k if rerank is None else reranked

    def _value(self, name: str) -> Any:
        """An array of the corpus. `tf.gather` of a variable itself makes every other read of it a copy."""
        return self._arrays[name].read_value()

    def answers(self, queries: Tensor, vectors: Tensor) -> dict[str, Any]:
        """`id`, `text` and `score`, `(queries, documents)` each, of queries `[Q]` and their vectors `[Q, W]`."""
        most = self.most_queries if self._rerank is None else 1
        documents, rows, scores = _in_parts(self._found, self._num_found(), most, queries, vectors)
        return {
            "id": tf.gather(self._value(names.IDS), documents),
            "text": tf.gather(self._value(names.TEXTS), rows),
            "score": scores,
            **self._places(vectors, rows),
        }

    def _places(self, vectors: Tensor, rows: Tensor) -> dict[str, Any]:
        """What is said of where the texts of rows `[Q, D]` match; nothing, as a text has one vector."""
        return {}

    def _num_found(self) -> Any:
        return tf.minimum(self._top_k, tf.shape(self._value(names.IDS))[0])

    def _found(self, queries: tf.Tensor, vectors: tf.Tensor) -> tuple[Any, Any, Any]:
        """The documents, the rows of their texts and their scores, [Q, D] each."""
        rows = tf.sort(self._nearest(vectors), axis=1)  # [Q, C]
        scores = tf.math.top_k(self._exact(vectors, rows), tf.minimum(self._kept, tf.shape(rows)[1]))
        rows = tf.gather(rows, scores.indices, batch_dims=1)
        if self._rerank is None:
            return self._documents(rows, scores.values)
        texts = tf.gather(self._value(names.TEXTS), rows)
        pairs = tf.repeat(queries, tf.shape(rows)[1]), tf.reshape(texts, [-1])
        return self._documents(rows, tf.reshape(self._rerank(*pairs), tf.shape(rows)))

    def _nearest(self, vectors: tf.Tensor) -> Any:
        """The rows with the best approximate scores, [Q, C]; of equal scores the lower row."""
        num_rows = tf.shape(self._value(names.ROW_STARTS))[0] - 1
        size = tf.maximum(256, self._step_numbers() // tf.shape(vectors)[0])

        def step(start: Any, scores: Any, rows: Any) -> tuple[Any, Any, Any]:
            end = tf.minimum(start + size, num_rows)
            found = self._approximate(vectors, start, end)  # [Q, R]
            best = tf.math.top_k(found, tf.minimum(self._candidates, end - start))
            scores, rows = (tf.concat(pair, 1) for pair in ((scores, best.values), (rows, best.indices + start)))
            best = tf.math.top_k(scores, tf.minimum(self._candidates, tf.shape(scores)[1]))
            return end, best.values, tf.gather(rows, best.indices, batch_dims=1)

        nothing = tf.zeros([tf.shape(vectors)[0], 0])
        specs = tf.TensorShape([]), tf.TensorShape([None, None]), tf.TensorShape([None, None])
        start = tf.constant(0), nothing, tf.cast(nothing, tf.int32)
        return tf.while_loop(lambda start, *_: start < num_rows, step, start, specs)[2]

    def _step_numbers(self) -> int:
        if names.FLOATS in self._arrays:
            return _STEP_NUMBERS
        return _STEP_NUMBERS // self._arrays[names.BITS].shape[1] if names.BITS in self._arrays else _INT8_ROWS

    def _approximate(self, vectors: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> Any:
        """The approximate scores of rows, [Q, R]: floats, or for signs the number of those that are equal, negative."""
        if names.FLOATS in self._arrays:
            return tf.matmul(vectors, self._value(names.FLOATS)[start:end], transpose_b=True)
        if names.BITS in self._arrays:
            words = tf.bitwise.bitwise_xor(_packed_signs(vectors)[:, None], self._value(names.BITS)[start:end])
            return -tf.reduce_sum(tf.cast(tf.raw_ops.PopulationCount(x=words), tf.float32), axis=-1)
        high = tf.cast(self._value(names.HIGH)[start:end], tf.float32)
        return tf.matmul(vectors, high, transpose_b=True) * self._value(names.SCALES)[start:end]

    def _exact(self, vectors: tf.Tensor, rows: tf.Tensor) -> Any:
        """The exact scores of rows, [Q, C], by sums in one order, so that equal vectors have equal scores."""
        if names.FLOATS in self._arrays:
            return tf.reduce_sum(tf.gather(self._value(names.FLOATS), rows) * vectors[:, None], axis=-1)
        high, low, scales = (tf.gather(self._value(name), rows) for name in (names.HIGH, names.LOW, names.SCALES))
        numbers = tf.cast(high, tf.float32) * 256 + tf.cast(low, tf.float32)
        return tf.reduce_sum(numbers * vectors[:, None], axis=-1) * scales

    def _documents(self, rows: tf.Tensor, scores: tf.Tensor) -> tuple[Any, Any, Any]:
        """The best documents with these texts, their texts' rows and their scores; of equal scores the first ones."""
        starts, documents = self._value(names.ROW_STARTS), self._value(names.DOCUMENTS)
        first, last = tf.gather(starts, rows), tf.shape(documents)[0] - 1
        counts = tf.gather(starts, rows + 1) - first
        places = tf.range(tf.clip_by_value(tf.reduce_max(counts), 1, self._top_k))  # of a text's documents
        is_there = places < counts[..., None]  # [Q, C, documents of a text]
        found = tf.where(is_there, tf.gather(documents, tf.minimum(first[..., None] + places, last)), last)
        shape = [tf.shape(rows)[0], -1]
        columns = found, tf.where(is_there, rows[..., None], 0), tf.where(is_there, scores[..., None], -np.inf)
        found, rows, scores = (tf.reshape(column, shape) for column in columns)
        order = tf.argsort(found, stable=True)
        found, rows, scores = (tf.gather(column, order, batch_dims=1) for column in (found, rows, scores))
        best = tf.math.top_k(scores, self._num_found())
        return tf.gather(found, best.indices, batch_dims=1), tf.gather(rows, best.indices, batch_dims=1), best.values


def _packed_signs(vectors: tf.Tensor) -> Any:
    """As `corpus.packed_signs`, in graph."""
    width = -vectors.shape[1] % 64
    bits = tf.cast(tf.pad(vectors, [[0, 0], [0, width]]) > 0, tf.int64)
    bits = tf.reshape(bits, [-1, (vectors.shape[1] + width) // 64, 64])
    return tf.reduce_sum(tf.bitwise.left_shift(bits, tf.range(64, dtype=tf.int64)), axis=-1)


def places_of(starts: tf.Tensor, rows: tf.Tensor) -> tuple[Any, Any]:
    """Where the values of some rows are, one row after the other, and which of these rows each is of."""
    first = tf.gather(starts, rows)
    counts = tf.gather(starts, rows + 1) - first
    own = tf.repeat(tf.range(tf.size(rows)), counts)
    return tf.range(tf.size(own)) + tf.gather(first - tf.cumsum(counts, exclusive=True), own), own


def _in_parts(find: Callable[..., Any], num_found: Any, most: int, queries: Any, vectors: Any) -> Any:
    """What `find` returns for a few queries at a time, so that memory does not grow with their number."""

    def step(start: Any, *found: Any) -> tuple[Any, ...]:
        end = tf.minimum(start + most, tf.shape(queries)[0])
        parts = zip(found, find(queries[start:end], vectors[start:end]), strict=True)
        return end, *(tf.concat(pair, 0) for pair in parts)

    nothing = [tf.zeros([0, num_found], dtype) for dtype in (tf.int32, tf.int32, tf.float32)]
    specs = [tf.TensorShape([]), *[tf.TensorShape([None, None])] * 3]
    start, size = tf.constant(0), tf.shape(queries)[0]
    return tf.while_loop(lambda start, *_: start < size, step, [start, *nothing], specs)[1:]
