"""What encoders of compared texts have in common: the loss and the metrics of pairs and triplets, and similarities.

Its functions are members of the tasks, whose `temperature` divides the cosines of pairs without similarities.
"""

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.metrics import SpearmanCorrelation
from keras_bert_layers.tasks.feeding.columns import holds_text
from keras_bert_layers.tasks.feeding.global_batches import on_real_rows
from keras_bert_layers.tasks.inputs.comparisons import SIMILARITY
from keras_bert_layers.tasks.objectives import contrastive
from keras_bert_layers.tasks.task import Task


def add_metrics(task: Any) -> None:
    """Gives a task the metrics beside the compiled ones; each is for one kind of data."""
    task._correlation = SpearmanCorrelation()
    task._accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    task._hidden_metrics = (task._correlation.name, task._accuracy.name)


def similarity(task: Any, first: Any, second: Any, batch_size: int | None = None) -> np.ndarray:
    """The cosine similarity of each text, or vector, with each of a second list.

    Args:
        task: the task; this function is a method of it.
        first: a list of texts, one text, or vectors `(rows, vector_dim)` as `predict` returns them.
        second: the same.
        batch_size: texts per step.

    Returns:
        Float32 `(first rows, second rows)`, in [-1, 1]; one row or column for a single text or vector.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])
        >>> backbone, preprocessor = kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer)
        >>> encoder = kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
        >>> encoder.similarity("cat", ["cat", "dog"]).shape
        (1, 2)
    """
    vectors = [_vectors_of(task, x, batch_size) for x in (first, second)]
    return contrastive.unit(vectors[0]) @ contrastive.unit(vectors[1]).T


def _vectors_of(task: Any, x: Any, batch_size: int | None) -> np.ndarray:
    if isinstance(x, str | bytes) or holds_text(x) or len(x) == 0:
        return task.predict([x] if isinstance(x, str | bytes) else x, batch_size, verbose=0)
    vectors = np.atleast_2d(keras.ops.convert_to_numpy(x)).astype(np.float32)
    if vectors.ndim != 2 or vectors.shape[1] != task.output.shape[-1]:
        rule = f"be texts, or vectors (rows, {task.output.shape[-1]})"
        raise ValueError(checks.message(type(task).__name__, "x", rule, checks.Shown(f"shape {vectors.shape}")))
    return vectors


@on_real_rows
def compute_loss(  # noqa: PLR0917 - the arguments of `keras.Model.compute_loss`
    task: Any, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
) -> Any:
    """The compiled loss, on cosines if the labels are similarities; cross entropy for pairs without labels."""
    kind, y, y_pred = _compared(task, y, y_pred)
    if kind != contrastive.TEXTS:
        return keras.Model.compute_loss(task, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
    if type(task.loss) is not keras.losses.MeanSquaredError:
        cure = 'Compile with loss="auto", or give similarities.'
        rule = 'be "auto" where pairs have no `y`'
        raise ValueError(checks.message(type(task).__name__, "loss", rule, task.loss, cure))
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return cross_entropy(y, y_pred, sample_weight) + sum(task.losses)


@on_real_rows
def compute_metrics(task: Any, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
    """The metrics for this kind of data, on the same values as the loss."""
    kind, y, y_pred = _compared(task, y, y_pred)
    if kind == contrastive.TEXTS:
        task._trainer.add_tokens(x)
        task._accuracy.update_state(y, y_pred)
        task._hidden_metrics = ("compile_metrics", task._correlation.name)
        return task.get_metrics_result()
    task._hidden_metrics = (task._accuracy.name, task._correlation.name)
    if kind == SIMILARITY:
        task._correlation.update_state(y, y_pred)
        task._hidden_metrics = (task._accuracy.name,)
    return Task.compute_metrics(task, x, y, y_pred, sample_weight)


def get_metrics_result(task: Any) -> dict[str, Any]:
    """The results of the metrics for the kind of data of the last batch."""
    found: dict[str, Any] = {}
    for metric in task.metrics:
        if metric.name not in task._hidden_metrics:
            result = metric.result()
            found.update(result if isinstance(result, dict) else {metric.name: result})
    return found


def _compared(task: Any, y: Any, y_pred: Any) -> tuple[str | None, Any, Any]:
    """The kind of the labels, the labels, and the values to compare them with, float32.

    The kind is the key of the labels of pairs, and None for target vectors.

    Similarities and cosines `(batch, 1)`; row indices `(batch,)` and logits `(batch, candidates)`; or target
    vectors and vectors.
    """
    kind = next(iter(y)) if isinstance(y, dict) else None
    if kind == SIMILARITY:
        return kind, y[kind], contrastive.cosine(y_pred[0::2], y_pred[1::2])[:, None]
    if kind != contrastive.TEXTS:
        return kind, y, y_pred
    num_texts = keras.ops.shape(y[kind])[1]  # may differ from batch to batch
    by_row = keras.ops.reshape(contrastive.unit(y_pred), (-1, num_texts, y_pred.shape[-1]))  # [B, texts, H]
    by_column = keras.ops.reshape(keras.ops.transpose(by_row[:, 1:], (1, 0, 2)), (-1, y_pred.shape[-1]))  # [C, H]
    logits = contrastive.in_batch_logits(by_row[:, 0], by_column, temperature=task.temperature, texts=y[kind])
    return kind, contrastive.row_indices(logits), logits
