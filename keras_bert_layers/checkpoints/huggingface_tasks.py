"""What `config.json` of a HuggingFace checkpoint says of its trained head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints import weight_table
from keras_bert_layers.checkpoints.checkpoint import StatedTask
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

_PROBLEMS = ("single_label_classification", "multi_label_classification", "regression")
# transformers, modeling_bert.py, BertForNextSentencePrediction: 0 says that the second text follows the first.
NEXT_SENTENCE_NAMES = ["is_next", "not_next"]


def huggingface_tasks(path: Path, values: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    """The tasks that a checkpoint's trained head can serve, the one that the config names first.

    Args:
        path: the config's file, for errors.
        values: what it holds.

    Returns:
        None for a bare encoder, or for a class that is not known.

    Raises:
        CheckpointError: labels that do not number 0, 1, 2, ...; a problem that transformers does not have.
    """
    architectures = values.get("architectures") or []
    reader = _READERS.get(architectures[0]) if len(architectures) == 1 else None
    return () if reader is None else reader(path, values)


def _sequence_classification(path: Path, values: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    labels = _labels(path, values)
    problem = values.get("problem_type") or (_PROBLEMS[0] if len(labels) > 1 else _PROBLEMS[2])
    dropout = _dropout(values)
    rows = weight_table.CLASSIFIER_ROWS
    if problem not in _PROBLEMS:
        raise CheckpointError(f"{path}: `problem_type` must be one of {list(_PROBLEMS)}. Received: {problem!r}.")
    if problem == _PROBLEMS[2]:
        if len(labels) != 1:
            raise CheckpointError(
                f"{path}: a regression must have one number a text. Received: {len(labels)} labels in `id2label`. "
                "Load the encoder with `load_backbone`, and add the head in Keras."
            )
        tasks = (
            StatedTask("classifier", {"problem_type": problem, **dropout}, rows),
            StatedTask("cross_encoder", dropout, rows),
        )
        # sentence-transformers' CrossEncoder leaves its mark.
        return tasks[::-1] if "sentence_transformers" in values else tasks
    if len(labels) == 1 and problem == _PROBLEMS[0]:
        raise CheckpointError(f"{path}: `id2label` must hold at least 2 labels for {problem}. Received: {labels}.")
    return (StatedTask("classifier", {"class_names": labels, "problem_type": problem, **dropout}, rows),)


def _token_classification(path: Path, values: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    options = {"tag_names": _labels(path, values), **_dropout(values)}
    return (StatedTask("token_classifier", options, weight_table.TOKEN_CLASSIFIER_ROWS),)


def _question_answering(path: Path, values: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    return (StatedTask("question_answerer", {}, weight_table.SPAN_ROWS),)


def _multiple_choice(path: Path, values: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    return (StatedTask("multiple_choice", _dropout(values), weight_table.MULTIPLE_CHOICE_ROWS),)


def _masked_lm(path: Path, values: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    return (StatedTask("masked_lm", {}, weight_table.MASKED_LM_ROWS),)


def _next_sentence(path: Path, values: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    options = {"class_names": NEXT_SENTENCE_NAMES, "pairs": True, "dropout": 0.0}
    return (StatedTask("classifier", options, weight_table.NEXT_SENTENCE_CLASSIFIER_ROWS),)


def _pretraining(path: Path, values: Mapping[str, Any]) -> tuple[StatedTask, ...]:
    rows = (*weight_table.MASKED_LM_ROWS, *weight_table.NEXT_SENTENCE_ROWS)
    return StatedTask("pretrainer", {}, rows), *_masked_lm(path, values)


_READERS: dict[str, Callable[[Path, Mapping[str, Any]], tuple[StatedTask, ...]]] = {
    "BertForMaskedLM": _masked_lm,
    "BertForMultipleChoice": _multiple_choice,
    "BertForNextSentencePrediction": _next_sentence,
    "BertForPreTraining": _pretraining,
    "BertForQuestionAnswering": _question_answering,
    "BertForSequenceClassification": _sequence_classification,
    "BertForTokenClassification": _token_classification,
}


def _dropout(values: Mapping[str, Any]) -> dict[str, Any]:
    """The head's own rate; where it is not said, the task takes the encoder's, as transformers does."""
    rate = values.get("classifier_dropout")
    return {} if rate is None else {"dropout": rate}


def _labels(path: Path, values: Mapping[str, Any]) -> list[str]:
    """The labels of `id2label`, by number; transformers' own two if the config says nothing."""
    labels = values.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    numbers = [str(number) for number in range(len(labels))] if isinstance(labels, dict) else []
    if not numbers or sorted(labels) != sorted(numbers):
        raise CheckpointError(f"{path}: `id2label` must give a label for each of 0, 1, 2, ... Received: {labels!r}.")
    return [str(labels[number]) for number in numbers]
