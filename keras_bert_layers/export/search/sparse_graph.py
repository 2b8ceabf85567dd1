"""The search of a SavedModel by weights of the vocabulary: an inverted index, of which a query reads its own tokens."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.export.search import corpus as names
from keras_bert_layers.export.search.saved_model_graph import SavedModelGraph, places_of


class SparseGraph(SavedModelGraph):
    """Finds the documents for queries, which are weights `[Q, vocabulary_size]`, 0 for most; one query at a time."""

    most_queries = 1

    def _nearest(self, vectors: tf.Tensor) -> Any:
        scores = self._scores(vectors[0])
        return tf.math.top_k(scores, tf.minimum(self._candidates, tf.size(scores))).indices[None]

    def _exact(self, vectors: tf.Tensor, rows: tf.Tensor) -> Any:
        return tf.gather(self._scores(vectors[0]), rows)

    def _scores(self, weights: tf.Tensor) -> Any:
        """The scores of all texts, [R], of weights of the vocabulary."""
        ids = tf.where(weights > 0)[:, 0]
        places, tokens = places_of(self._value(names.POSTING_STARTS), ids)
        products = tf.gather(self._value(names.POSTING_WEIGHTS), places) * tf.gather(tf.gather(weights, ids), tokens)
        num_texts = tf.shape(self._value(names.ROW_STARTS))[0] - 1
        return tf.math.unsorted_segment_sum(products, tf.gather(self._value(names.POSTING_ROWS), places), num_texts)
