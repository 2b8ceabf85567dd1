"""`huggingface_heads`: the trained heads of a HuggingFace checkpoint, by its tensors."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import check_one_of, shown
from keras_bert_layers.checkpoints.task_table import TASKS, one_output_heads
from keras_bert_layers.checkpoints.weights.reports import first_names
from keras_bert_layers.checkpoints.weights.table import (
    MASKED_LM_ROWS,
    NEXT_SENTENCE_CLASSIFIER_ROWS,
    POOLER_ROWS,
    WeightRow,
    untied,
)

# What older releases of transformers wrote for every model.
_DEFAULT = {0: "LABEL_0", 1: "LABEL_1"}
# A file may state any number; there is a bound, so that a hostile one does not fill the memory.
_MOST = 1_000_000


def stated_labels(values: Mapping[str, Any]) -> list[str] | None:
    """The labels that the config states, by `id2label` or by `num_labels` alone; None if it states none.

    Examples:
        >>> stated_labels({"id2label": {"0": "bad", "1": "good"}}), stated_labels({"num_labels": 2})
        (['bad', 'good'], ['LABEL_0', 'LABEL_1'])
        >>> stated_labels({}) is None
        True
    """
    known = _by_index(values.get("id2label"))
    number = values.get("num_labels")
    if known and known != _DEFAULT:
        number = max(known) + 1
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 < number <= _MOST
    return labels_of(values, number)[0] if is_number else None  # type: ignore[arg-type]


def labels_of(values: Mapping[str, Any], number: int, path: Path | str = "config.json") -> tuple[list[str], list[str]]:
    """A label for each output of a head, and what is doubtful about them.

    Output `i` has the label that `id2label` gives for `i`. Without one it is `LABEL_i`, as in transformers. A label
    that several outputs have is numbered.

    Args:
        values: the content of `config.json`.
        number: the number of outputs, from the weights.
        path: the config's file, for the doubts.

    Returns:
        The labels, all different; and sentences, empty if `id2label` gives every output its own label, or is not there.

    Examples:
        >>> labels_of({"id2label": {"1": "bad", "2": "good", "3": "bad"}}, 4)[0]
        ['LABEL_0', 'bad', 'good', 'bad (2)']
    """
    stated = values.get("id2label")
    known = _by_index(stated)
    labels = _numbered([known.get(index) or f"LABEL_{index}" for index in range(number)])
    if not stated or known == dict(enumerate(labels)):
        return labels, []
    return labels, [
        f"{path}: `id2label` must give each of the head's {number} outputs its own label, by its index from 0. "
        f"Received: {shown(stated)}. The outputs have the labels {shown(labels)}."
    ]


def _by_index(stated: Any) -> dict[int, str]:
    """Index -> label, of a dictionary or a list; without what has no index or no label."""
    pairs = stated.items() if isinstance(stated, dict) else enumerate(stated) if isinstance(stated, list) else ()
    return {int(index): str(label) for index, label in pairs if str(index).isdecimal() and label not in (None, "")}


def _numbered(labels: Sequence[str]) -> list[str]:
    """The labels, with a number behind each that was there before."""
    taken: set[str] = set()
    result = []
    for label in labels:
        name, count = label, 1
        while name in taken or (count > 1 and name in labels):
            count += 1
            name = f"{label} ({count})"
        taken.add(name)
        result.append(name)
    return result


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


# How the names of a task's head begin. A head that begins so and is not the task's own is not thrown away silently.
_CLASSIFIER = ("classifier.",)
_BEGINNINGS = {
    **dict.fromkeys(("classifier", "cross_encoder", "multiple_choice", "token_classifier"), _CLASSIFIER),
    **dict.fromkeys(("masked_lm", "pretrainer"), ("cls.predictions.", "lm_head.")),
    "question_answerer": ("qa_outputs.",),
}
_LABELS = {"classifier": "class_names", "token_classifier": "tag_names"}
_NAMES_IN_AN_ERROR = 8


def new_head_options(source: object, task: str, values: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    """The arguments of a new head by the config: its labels.

    Args:
        source: the checkpoint, for errors.
        task: the task, of which the checkpoint has no trained head.
        values: the content of `config.json`.
        shapes: the tensors' shapes, by their names in the table.

    Returns:
        `class_names` or `tag_names`; nothing if the config states none, or another kind of head.

    Raises:
        CheckpointError: the tensors are a head of this kind that cannot be read: of several layers, on other inputs, or
            not whole.
    """
    row, stated = TASKS[task], stated_classes(values)
    if _is_of_another(task, stated):
        return {}
    if not check_other_heads(source, task, values, shapes) and row.head and row.huggingface in stated:
        warnings.warn(
            f"{source}: the config's `architectures` names {row.huggingface}, and the weights hold no such head. The "
            "head is new and has to be trained.",
            stacklevel=4,
        )
    labels = stated_labels(values) if task in _LABELS else None
    return {} if labels is None else {_LABELS[task]: labels}


def _is_of_another(task: str, stated: list[str]) -> bool:
    """Whether the config says that the tensor `classifier` is of another task."""
    if _BEGINNINGS.get(task) != _CLASSIFIER or TASKS[task].huggingface in stated:
        return False
    return any(name in CLASSIFIERS for name in stated)


def check_other_heads(source: object, task: str, values: Mapping[str, Any], shapes: Shapes) -> bool:
    """Refuses to put a new head in place of a stored one, unless that one is whole and is for something else.

    Returns:
        Whether there are tensors with the names of such a head.

    Raises:
        CheckpointError: see `new_head_options`.
    """
    row = TASKS[task]
    names = [name for name in shapes if name.startswith(_BEGINNINGS.get(task, ()) or "\0")]
    if not names or _is_of_another(task, stated_classes(values)):
        return False
    found = f"{source}: the weights hold a head that is no {row.class_name}'s: " + first_names(
        [f"{name} {shapes[name]}" for name in names], _NAMES_IN_AN_ERROR
    )
    cure = f"To train a new head instead: `{row.class_name}(load_backbone(source), ...)`."
    if _BEGINNINGS[task] == _CLASSIFIER and classifier_outputs(shapes) is not None and len(names) == 2:
        if row.pooled and not has_rows(POOLER_ROWS, shapes):
            raise CheckpointError(f"{found}. It would read the pooled output, and the weights lack the pooler. {cure}")
        return True
    missing = [str(part.huggingface.name) for part in row.head if part.huggingface and not has_rows((part,), shapes)]
    if _BEGINNINGS[task] != _CLASSIFIER and missing:
        raise CheckpointError(f"{found}. It lacks {', '.join(missing)}. {cure}")
    raise CheckpointError(f"{found}. {_in_keras(row.pooled, shapes, names)} {cure}")


def _in_keras(is_pooled: bool, shapes: Shapes, names: list[str]) -> str:
    """How to add the stored dense layers in Keras."""
    layers = [shapes[name][0] for name in names if len(shapes[name]) == 2]
    dense = [f'keras.layers.Dense({width}, activation="tanh")' for width in layers[:-1]]
    dense += [f"keras.layers.Dense({width})" for width in layers[-1:]]
    inputs = 'backbone.output["sequence_output"]'
    if is_pooled:
        inputs = 'backbone.output["pooled_output"]' if has_rows(POOLER_ROWS, shapes) else f"{inputs}[:, 0]"
    return (
        f"Add it in Keras: `backbone = load_backbone(source)` and `keras.Model(backbone.input, keras.Sequential(["
        f"{', '.join(dense)}])({inputs}))`, with the activations that it was trained with, which no file states, and "
        "with these tensors as its weights, kernels transposed."
    )
