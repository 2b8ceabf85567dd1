"""`huggingface_heads`: the trained head of a HuggingFace checkpoint, by the class in its `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import check_one_of
from keras_bert_layers.checkpoints.task_table import TASKS, one_output_heads
from keras_bert_layers.checkpoints.weights.table import NEXT_SENTENCE_CLASSIFIER_ROWS

_PROBLEMS = ("single_label_classification", "multi_label_classification", "regression")
# The label 0 means that the second text follows the first: transformers, modeling_bert.py,
# BertForNextSentencePrediction; google-research/bert, run_pretraining.py.
NEXT_SENTENCE = TrainedHead(
    "classifier",
    {"class_names": ["is_next", "not_next"], "pairs": True, "dropout": 0.0},
    NEXT_SENTENCE_CLASSIFIER_ROWS,
)


def huggingface_heads(path: Path, values: Mapping[str, Any]) -> tuple[TrainedHead, ...]:
    """The tasks that a checkpoint's trained head can serve, the config's own class first.

    Args:
        path: the config's file, for errors.
        values: its content.

    Returns:
        The tasks; empty for a bare encoder and for an unknown class.

    Raises:
        CheckpointError: the labels are not numbered 0, 1, 2, ...; transformers has no such `problem_type`.
    """
    architectures = values.get("architectures") or []
    kind = architectures[0] if len(architectures) == 1 else None
    if kind == TASKS["classifier"].huggingface:
        return _sequence_classification(path, values)
    if kind == "BertForNextSentencePrediction":
        return (NEXT_SENTENCE,)
    names = [task.name for task in TASKS.values() if task.head and task.huggingface == kind]
    if names == ["pretrainer"]:
        names.append("masked_lm")
    options: dict[str, Any] = {"tag_names": _labels(path, values)} if names == ["token_classifier"] else {}
    if names in (["token_classifier"], ["multiple_choice"]):
        options |= _dropout(values)
    return tuple(TASKS[name].trained(**options) for name in names)


def _sequence_classification(path: Path, values: Mapping[str, Any]) -> tuple[TrainedHead, ...]:
    labels = _labels(path, values)
    problem = values.get("problem_type") or (_PROBLEMS[0] if len(labels) > 1 else _PROBLEMS[2])
    dropout = _dropout(values)
    check_one_of(path, "problem_type", problem, _PROBLEMS)
    if problem == _PROBLEMS[2]:
        if len(labels) != 1:
            raise CheckpointError(
                f"{path}: a regression must have one output. Received: {len(labels)} labels in `id2label`. "
                "Load the encoder with `load_backbone`, and add the head in Keras."
            )
        tasks = one_output_heads(**dropout)
        # sentence-transformers' CrossEncoder writes this key.
        return tasks[::-1] if "sentence_transformers" in values else tasks
    if len(labels) == 1 and problem == _PROBLEMS[0]:
        raise CheckpointError(f"{path}: `id2label` must hold at least 2 labels for {problem}. Received: {labels}.")
    return (TASKS["classifier"].trained(class_names=labels, problem_type=problem, **dropout),)


def _dropout(values: Mapping[str, Any]) -> dict[str, Any]:
    """The head's own rate. Without one, the task uses the encoder's, like transformers."""
    rate = values.get("classifier_dropout")
    return {} if rate is None else {"dropout": rate}


def _labels(path: Path, values: Mapping[str, Any]) -> list[str]:
    """The labels of `id2label` in order; transformers' own two if the config has none."""
    labels = values.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    indices = [str(index) for index in range(len(labels))] if isinstance(labels, dict) else []
    if not indices or sorted(labels) != sorted(indices):
        raise CheckpointError(f"{path}: `id2label` must give a label for each of 0, 1, 2, ... Received: {labels!r}.")
    return [str(labels[index]) for index in indices]
