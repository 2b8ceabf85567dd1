"""`Comparison`: what encoders of compared texts have in common, the loss and the metrics of pairs and triplets."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Ids, Outputs, Rows, Strings, Tensor
from keras_bert_layers.losses import in_batch
from keras_bert_layers.losses.vectors import SIMILARITY, TEXTS
from keras_bert_layers.metrics import SpearmanCorrelation
from keras_bert_layers.tasks.feeding.columns import holds_text
from keras_bert_layers.tasks.inputs.comparisons import labels_for
from keras_bert_layers.tasks.task import Task


class Comparison:
    """The loss, the metrics and the similarities of a task that encodes texts to compare them.

    Args:
        task: the task; its `temperature` divides the cosines of pairs without similarities.
        normalize: whether pairs without similarities are compared by cosines; False for dot products.
    """

    def __init__(self, task: Task, *, normalize: bool = True):
        self._task, self._normalize = task, normalize
        # Each is for one kind of data; the task has them as attributes too, so that Keras finds them.
        self.correlation = SpearmanCorrelation()
        self.accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
        self._hidden_metrics: tuple[str, ...] = (self.correlation.name, self.accuracy.name)

    def similarity(self, first: Strings, second: Strings, batch_size: int | None) -> np.ndarray:
        """The cosine of each text, or vector, with each of a second list, float32 `(first rows, second rows)`."""
        vectors = [in_batch.unit(self._vectors_of(x, batch_size)) for x in (first, second)]
        return vectors[0] @ vectors[1].T

    def _vectors_of(self, x: Strings, batch_size: int | None) -> np.ndarray:
        task = self._task
        if isinstance(x, str | bytes) or holds_text(x) or len(x) == 0:
            return task.predict([x] if isinstance(x, str | bytes) else x, batch_size, verbose=0)
        vectors = np.atleast_2d(keras.ops.convert_to_numpy(x)).astype(np.float32)
        if vectors.ndim != 2 or vectors.shape[1] != task.output.shape[-1]:
            rule = f"be texts, or vectors (rows, {task.output.shape[-1]})"
            raise ValueError(checks.message(type(task).__name__, "x", rule, checks.Shown(f"shape {vectors.shape}")))
        return vectors

    def loss(self, compiled: Callable[..., Any], y: Tensor, y_pred: Tensor, sample_weight: Outputs) -> Any:
        """The compiled loss, on vectors or on cosines; by default cross entropy for pairs without labels."""
        task = self._task
        if task.pipeline.loss is not None:
            y, vectors = labels_for(task, y), self.by_row(y, y_pred)
            return compiled(y=y, y_pred=vectors, sample_weight=sample_weight)
        kind, y, y_pred = self._compared(y, y_pred)
        if kind != TEXTS:
            return compiled(y=y, y_pred=y_pred, sample_weight=sample_weight)
        if type(task.loss) is not keras.losses.MeanSquaredError:
            cure = 'Compile with loss="auto", or give similarities.'
            rule = 'be "auto", or one of `losses`, where pairs have no `y`'
            raise ValueError(checks.message(type(task).__name__, "loss", rule, task.loss, cure))
        cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return cross_entropy(y, y_pred, sample_weight) + sum(task.losses)

    def metrics(
        self, compiled: Callable[..., Any], x: Ids, y: Any, y_pred: Any, sample_weight: Outputs
    ) -> dict[str, Any]:
        """The metrics for this kind of data, on the same values as the loss."""
        kind, y, y_pred = self._compared(y, y_pred)
        if kind == TEXTS:
            self._task.trainer.add_tokens(x)
            self.accuracy.update_state(y, y_pred)
            self._hidden_metrics = ("compile_metrics", self.correlation.name)
            return self._task.get_metrics_result()
        self._hidden_metrics = (self.accuracy.name, self.correlation.name)
        if kind == SIMILARITY:
            self.correlation.update_state(y, y_pred)
            self._hidden_metrics = (self.accuracy.name,)
        return compiled(x, y, y_pred, sample_weight)

    def results(self) -> dict[str, Any]:
        """The results of the metrics for the kind of data of the last batch."""
        found: dict[str, Any] = {}
        for metric in self._task.metrics:
            if metric.name not in self._hidden_metrics:
                result = metric.result()
                found.update(result if isinstance(result, dict) else {metric.name: result})
        return found

    def _compared(self, y: Tensor, y_pred: Tensor) -> tuple[str | None, Any, Any]:
        """The kind of the labels, the labels, and the values to compare them with, float32.

        The kind is the key of the labels of pairs, and None for target vectors.

        Similarities and cosines `(batch, 1)`; row indices `(batch,)` and logits `(batch, candidates)`; or target
        vectors and vectors.
        """
        if not isinstance(y, dict):
            return None, y, y_pred
        kind = SIMILARITY if SIMILARITY in y else TEXTS
        vectors = self.by_row(y, in_batch.unit(y_pred) if self._normalize or kind == SIMILARITY else y_pred)
        if kind == SIMILARITY:
            return kind, y[kind], keras.ops.sum(vectors[:, 0] * vectors[:, 1], axis=-1)[:, None]
        candidates, options = in_batch.by_column(vectors), {"temperature": self._task.temperature, "texts": y[kind]}
        logits = in_batch.in_batch_logits(vectors[:, 0], candidates, **options)
        return kind, in_batch.row_indices(logits), logits

    def by_row(self, y: Any, vectors: Tensor) -> Any:
        """The vectors of all texts of each row, `(batch, texts, vector_dim)`."""
        num_texts = keras.ops.shape(y[TEXTS])[1] if TEXTS in y else 2  # may differ from batch to batch
        return keras.ops.reshape(vectors, (-1, num_texts, vectors.shape[-1]))


def scores_of_texts(task: Task, kind: type, queries: Rows, documents: Rows, batch_size: int | None) -> np.ndarray:
    """The score of each document for each query, float32 `(queries, documents)`.

    Args:
        task: has `encode_queries` and `encode_documents`.
        kind: what these return, which has `scores`.
        queries: a list of texts, one text, or what `encode_queries` returned.
        documents: the same, of `encode_documents`.
        batch_size: texts per step.
    """
    found: list[Any] = [
        x if isinstance(x, kind) else encode([x] if isinstance(x, str | bytes) else x, batch_size, verbose=0)
        for x, encode in ((queries, task.encode_queries), (documents, task.encode_documents))
    ]
    return found[1].scores(found[0])
