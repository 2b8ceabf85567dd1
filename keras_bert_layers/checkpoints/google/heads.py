"""`google_heads`: the trained heads of a checkpoint of google-research/bert, by the names of its variables."""

from __future__ import annotations

from collections.abc import Mapping

from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.files.tensor_file import TensorInfo
from keras_bert_layers.checkpoints.huggingface.heads import NEXT_SENTENCE
from keras_bert_layers.checkpoints.task_table import TASKS, one_output_heads
from keras_bert_layers.checkpoints.weights.row import WeightRow

# google-research/bert, run_classifier.py: the rate on the pooled output, for every config.
_CLASSIFIER_DROPOUT = 0.1
# Fine-tuning comes after pretraining, so its head was trained last.
_LATEST_FIRST = ("classifier", "question_answerer", "pretrainer", "masked_lm")


def google_heads(infos: Mapping[str, TensorInfo]) -> tuple[TrainedHead, ...]:
    """The tasks that a checkpoint's trained heads can serve, the last one that it was trained for first.

    Args:
        infos: the variables of the checkpoint.

    Returns:
        Heads of fine-tuning first, then those of pretraining; empty for a bare encoder.

    Examples:
        >>> infos = {"output_weights": TensorInfo("F32", (3, 8)), "output_bias": TensorInfo("F32", (3,))}
        >>> google_heads(infos)[0].name, google_heads(infos)[0].options["num_classes"]
        ('classifier', 3)
    """
    heads: list[TrainedHead] = []
    for name in _LATEST_FIRST:
        if _holds(infos, TASKS[name].head):
            heads += _classifiers(infos["output_weights"].shape) if name == "classifier" else [TASKS[name].trained()]
    if _holds(infos, NEXT_SENTENCE.rows) and not _holds(infos, TASKS["masked_lm"].head):
        heads.append(NEXT_SENTENCE)
    return tuple(heads)


def _holds(infos: Mapping[str, TensorInfo], rows: tuple[WeightRow, ...]) -> bool:
    return all(row.google is not None and row.google.name in infos for row in rows)


def _classifiers(shape: tuple[int, ...]) -> tuple[TrainedHead, ...]:
    """A head with one output is a regression, and scores pairs."""
    if shape[:1] == (1,):
        return one_output_heads(dropout=_CLASSIFIER_DROPOUT)
    return (TASKS["classifier"].trained(num_classes=shape[0] if shape else 0, dropout=_CLASSIFIER_DROPOUT),)
