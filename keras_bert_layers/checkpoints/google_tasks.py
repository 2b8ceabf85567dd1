"""Which trained heads a checkpoint of google-research/bert holds, by the names of its variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import StatedTask
from keras_bert_layers.checkpoints.tensor_file import TensorInfo
from keras_bert_layers.checkpoints.weight_row import WeightRow
from keras_bert_layers.checkpoints.weight_table import (
    CLASSIFIER_ROWS,
    MASKED_LM_ROWS,
    NEXT_SENTENCE_CLASSIFIER_ROWS,
    NEXT_SENTENCE_ROWS,
    SPAN_ROWS,
)

# google-research/bert, run_classifier.py: the rate on the pooled output, whatever the config says.
_CLASSIFIER_DROPOUT = 0.1
# google-research/bert, run_pretraining.py: label 0 is of a text that follows.
_NEXT_SENTENCE = {"class_names": ["is_next", "not_next"], "pairs": True, "dropout": 0.0}


def google_tasks(infos: Mapping[str, TensorInfo]) -> tuple[StatedTask, ...]:
    """The tasks that a checkpoint's trained heads can serve, the one that it was last trained for first.

    Args:
        infos: the variables of the checkpoint.

    Returns:
        Heads of fine-tuning first, then those of pretraining; none for a bare encoder.

    Examples:
        >>> infos = {"output_weights": TensorInfo("F32", (3, 8)), "output_bias": TensorInfo("F32", (3,))}
        >>> google_tasks(infos)[0].name, google_tasks(infos)[0].options["num_classes"]
        ('classifier', 3)
    """
    tasks = []
    if _holds(infos, CLASSIFIER_ROWS):
        tasks += _classifiers(infos["output_weights"].shape)
    if _holds(infos, SPAN_ROWS):
        tasks.append(StatedTask("question_answerer", {}, SPAN_ROWS))
    if _holds(infos, MASKED_LM_ROWS) and _holds(infos, NEXT_SENTENCE_ROWS):
        tasks.append(StatedTask("pretrainer", {}, (*MASKED_LM_ROWS, *NEXT_SENTENCE_ROWS)))
    if _holds(infos, MASKED_LM_ROWS):
        tasks.append(StatedTask("masked_lm", {}, MASKED_LM_ROWS))
    elif _holds(infos, NEXT_SENTENCE_ROWS):
        tasks.append(StatedTask("classifier", dict(_NEXT_SENTENCE), NEXT_SENTENCE_CLASSIFIER_ROWS))
    return tuple(tasks)


def _holds(infos: Mapping[str, TensorInfo], rows: tuple[WeightRow, ...]) -> bool:
    return all(row.google is not None and row.google.name in infos for row in rows)


def _classifiers(shape: tuple[int, ...]) -> list[StatedTask]:
    """A head with one output gives a number, and a score of pairs."""
    dropout: dict[str, Any] = {"dropout": _CLASSIFIER_DROPOUT}
    if shape[:1] == (1,):
        regression = StatedTask("classifier", {"problem_type": "regression", **dropout}, CLASSIFIER_ROWS)
        return [regression, StatedTask("cross_encoder", dropout, CLASSIFIER_ROWS)]
    return [StatedTask("classifier", {"num_classes": shape[0] if shape else 0, **dropout}, CLASSIFIER_ROWS)]
