"""`huggingface_heads`: the trained heads of a HuggingFace checkpoint, by its tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.files.json_file import check_one_of
from keras_bert_layers.checkpoints.huggingface.labels import labels_of
from keras_bert_layers.checkpoints.task_table import TASKS, one_output_heads
from keras_bert_layers.checkpoints.weights.row import WeightRow
from keras_bert_layers.checkpoints.weights.table import (
    MASKED_LM_ROWS,
    NEXT_SENTENCE_CLASSIFIER_ROWS,
    POOLER_ROWS,
    untied,
)

_PROBLEMS = ("single_label_classification", "multi_label_classification", "regression")
# The label 0 means that the second text follows the first: transformers, modeling_bert.py,
# BertForNextSentencePrediction; google-research/bert, run_pretraining.py.
NEXT_SENTENCE = TrainedHead(
    "classifier",
    {"class_names": ["is_next", "not_next"], "pairs": True, "dropout": 0.0},
    NEXT_SENTENCE_CLASSIFIER_ROWS,
)
# transformers' classes of a BERT with a head -> our task. The first three have a head named `classifier`, and no tensor
# tells what it classifies.
CLASSIFIERS = {TASKS[name].huggingface: name for name in ("classifier", "token_classifier", "multiple_choice")}
_OTHERS = {TASKS[name].huggingface: name for name in ("question_answerer", "pretrainer", "masked_lm")}
_NEXT_SENTENCE = "BertForNextSentencePrediction"
CLASSES = {**CLASSIFIERS, **_OTHERS, _NEXT_SENTENCE: "classifier"}
# The same head. A decoder's attention has another mask, which the config says and `BertConfig` refuses.
_SAME_HEAD = {"BertLMHeadModel": "BertForMaskedLM"}

Shapes = Mapping[str, tuple[int, ...]]


def stated_classes(values: Mapping[str, Any]) -> list[str]:
    """The classes with heads that a config names, without the TF or Flax before them.

    Examples:
        >>> stated_classes({"architectures": ["TFBertForMaskedLM", "MyBert"]})
        ['BertForMaskedLM']
    """
    names = values.get("architectures")
    names = [names] if isinstance(names, str) else names
    plain = [str(name).removeprefix("TF").removeprefix("Flax") for name in names] if isinstance(names, list) else []
    plain = [_SAME_HEAD.get(name, name) for name in plain]
    return [name for name in dict.fromkeys(plain) if name in CLASSES]


def huggingface_heads(
    path: Path, values: Mapping[str, Any], shapes: Shapes, *, is_tied: Callable[[], bool] = lambda: True
) -> tuple[TrainedHead, ...]:
    """The tasks whose trained head a checkpoint holds, those of the config's `architectures` first.

    The tensors decide. `architectures` says what they cannot: what a `classifier` classifies, and which of several
    heads is the checkpoint's own.

    Args:
        path: the config's file, for errors.
        values: its content.
        shapes: the tensors' shapes, by their names in the table.
        is_tied: whether the masked language model's decoder is the token embedding, if both are stored.

    Returns:
        The tasks; empty for a bare encoder and for heads of other kinds.

    Raises:
        CheckpointError: transformers has no such `problem_type`.
    """
    stated = stated_classes(values)
    classifiers = [name for name in stated if name in CLASSIFIERS] or CLASSIFIERS
    heads: list[TrainedHead] = []
    for name in dict.fromkeys([*stated, *classifiers, *_OTHERS, _NEXT_SENTENCE]):
        if _fits(name, shapes, is_stated=name in stated):
            found = _heads_of(name, path, values, shapes, is_tied)
            heads += [dataclasses.replace(head, stated=name in stated) for head in found]
    return tuple(heads)


def _fits(name: str, shapes: Shapes, *, is_stated: bool) -> bool:
    """Whether the head of a class of transformers is there, and if the config does not state it, all that it reads."""
    task = TASKS[CLASSES[name]]
    if not has_rows(NEXT_SENTENCE.rows if name == _NEXT_SENTENCE else task.head, shapes):
        return False
    if name == _NEXT_SENTENCE and not is_stated and has_rows(MASKED_LM_ROWS, shapes):
        return False  # a pretrained model's, which nobody means by a classifier
    number = classifier_outputs(shapes)
    if name in CLASSIFIERS and (number is None or (task.name == "multiple_choice" and number != 1)):
        return False
    if task.name == "token_classifier":
        return is_stated or number != 1
    return is_stated or not task.pooled or has_rows(POOLER_ROWS, shapes)


def has_rows(rows: tuple[WeightRow, ...], shapes: Shapes) -> bool:
    """Whether every row has its tensor."""
    cells = [row.huggingface for row in rows]
    return all(cell is not None and (cell.name in shapes or cell.alias in shapes) for cell in cells)


def classifier_outputs(shapes: Shapes) -> int | None:
    """The number of outputs of the tensor `classifier`; None if it is no dense layer on the encoder's outputs."""
    weight, bias = shapes.get("classifier.weight", ()), shapes.get("classifier.bias", ())
    width = shapes.get("encoder.layer.0.attention.self.query.weight", (0, 0))[-1]
    return weight[0] if len(weight) == 2 and weight[1] == width and bias == weight[:1] else None


def _heads_of(
    name: str, path: Path, values: Mapping[str, Any], shapes: Shapes, is_tied: Callable[[], bool]
) -> tuple[TrainedHead, ...]:
    """The tasks that the head of a class of transformers serves."""
    if name == _NEXT_SENTENCE:
        return (NEXT_SENTENCE,)
    task = TASKS[CLASSES[name]]
    match task.name:
        case "classifier":
            return _sequence_classification(path, values, shapes)
        case "token_classifier":
            tags, doubts = labels_of(values, shapes["classifier.weight"][0], path)
            if any(name.startswith("crf.") for name in shapes):
                doubts += [f"{path.parent}: the conditional random field `crf` is not read; tags are of logits alone."]
            head = task.trained(tag_names=tags, **_dropout(values))
            return (dataclasses.replace(head, doubts=tuple(doubts)),)
        case "multiple_choice":
            return (task.trained(**_dropout(values)),)
        case "masked_lm" | "pretrainer":
            return (_masked_lm(task.trained(), values, shapes, is_tied),)
    return (task.trained(),)


def _masked_lm(
    head: TrainedHead, values: Mapping[str, Any], shapes: Shapes, is_tied: Callable[[], bool]
) -> TrainedHead:
    """The head with the token embedding as its decoder, or with its own."""
    both = "cls.predictions.decoder.weight" in shapes and "embeddings.word_embeddings.weight" in shapes
    # transformers does not tie two matrices that differ, whatever the config says: `tie_weights` in modeling_utils.py.
    if values.get("tie_word_embeddings", True) is not False and (not both or is_tied()):
        return head
    return dataclasses.replace(head, options={**head.options, "tie_weights": False}, rows=untied(head.rows))


def _sequence_classification(path: Path, values: Mapping[str, Any], shapes: Shapes) -> tuple[TrainedHead, ...]:
    number = shapes["classifier.weight"][0]
    problem = values.get("problem_type") or _PROBLEMS[0]
    check_one_of(path, "problem_type", problem, _PROBLEMS)
    dropout = _dropout(values)
    if number == 1:
        tasks = one_output_heads(**dropout)
        if problem == _PROBLEMS[1]:
            doubt = f"{path}: `problem_type` is {problem}, of one label: the score of a regression is its logit."
            tasks = (dataclasses.replace(tasks[0], doubts=(doubt,)), tasks[1])
        # sentence-transformers' CrossEncoder writes this key.
        return tasks[::-1] if "sentence_transformers" in values else tasks
    labels, doubts = labels_of(values, number, path)
    options = {"num_classes": number, "class_names": labels, "problem_type": problem, **dropout}
    head = TASKS["classifier"].trained(**options)
    return (dataclasses.replace(head, doubts=tuple(doubts)),)


def _dropout(values: Mapping[str, Any]) -> dict[str, Any]:
    """The head's own rate. Without one, the task uses the encoder's, like transformers."""
    rate = values.get("classifier_dropout")
    return {} if rate is None else {"dropout": rate}
