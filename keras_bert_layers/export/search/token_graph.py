"""The search of a SavedModel by the vectors of tokens (MaxSim): one query at a time, with all documents.

Axes as in `saved_model_graph`; T tokens of a query, N tokens of documents.
"""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.export.search import corpus as names
from keras_bert_layers.export.search.saved_model_graph import SavedModelGraph, places_of

# Texts of a step, of some hundred tokens each.
_STEP_TEXTS = 256


class TokenGraph(SavedModelGraph):
    """Finds the documents for queries, which are vectors `[Q, T, W]`, zeros where there is no token."""

    most_queries = 1

    def _step_numbers(self) -> int:
        return _STEP_TEXTS

    def _approximate(self, vectors: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> Any:
        starts = self._value(names.TOKEN_STARTS)[start : end + 1]
        texts = tf.repeat(tf.range(end - start), starts[1:] - starts[:-1])
        own, name = slice(starts[0], starts[-1]), names.FLOATS if names.FLOATS in self._arrays else names.HIGH
        products = tf.matmul(vectors[0], tf.cast(self._value(name)[own], tf.float32), transpose_b=True)
        products = products if name == names.FLOATS else products * self._value(names.SCALES)[own]
        return _max_sim(products, texts)

    def _exact(self, vectors: tf.Tensor, rows: tf.Tensor) -> Any:
        tokens, texts = self._tokens(rows[0])
        return _max_sim(super()._exact(vectors[0], tokens[None]), texts)

    def _tokens(self, rows: tf.Tensor) -> tuple[Any, Any]:
        """The tokens of texts `[C]`, [N], and which of these texts each is of."""
        return places_of(self._value(names.TOKEN_STARTS), rows)

    def _places(self, vectors: Tensor, rows: Tensor) -> dict[str, Any]:
        """`start` and `end`: of the tokens with bytes, the one with the largest product with a token of the query."""
        products = super()._exact

        def spans(query: tuple[Any, Any]) -> Any:
            vectors, (tokens, texts) = query[0], self._tokens(query[1])
            vectors = tf.boolean_mask(vectors, tf.reduce_any(vectors != 0, axis=-1))
            found, order = tf.gather(self._value(names.SPANS), tokens), tf.range(tf.size(tokens))
            best = tf.reduce_max(products(vectors, tokens[None]), axis=0)
            best = tf.where(found[:, 0] < found[:, 1], best, best.dtype.min)
            is_best = best == tf.gather(tf.math.segment_max(best, texts), texts)
            return tf.gather(found, tf.math.segment_min(tf.where(is_best, order, tf.size(tokens)), texts))

        found = tf.maximum(0, tf.map_fn(spans, (vectors, rows), fn_output_signature=tf.TensorSpec([None, 2], tf.int32)))
        return {"start": found[..., 0], "end": found[..., 1]}


def _max_sim(products: tf.Tensor, texts: tf.Tensor) -> Any:
    """The scores of texts, [1, R], of the products of tokens, [T, N]; every text has a token."""
    return tf.reduce_sum(tf.math.segment_max(tf.transpose(products), texts), axis=1)[None]
