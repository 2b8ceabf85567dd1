"""`new_task`: the model that `train` trains."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from keras_bert_layers.cli.models import keras_file, source_of
from keras_bert_layers.cli.training_rows import TrainingRows

PROBLEM_TYPES = {
    "one": "single_label_classification",
    "several": "multi_label_classification",
    "number": "regression",
}
# Of the windows of a context, in tokens, as in google-research/bert `run_squad.py`.
_WINDOW, _STRIDE = 384, 128


def new_task(source: str, task: str, rows: Iterable[TrainingRows], arguments: argparse.Namespace, *, owner: str) -> Any:
    """A task for some rows.

    A `.keras` file is trained further. From other sources, a classifier and a token classifier get a new head for the
    classes of the rows; other tasks keep the source's head if it has a trained one.

    Args:
        source: a `.keras` file, a directory, or a name.
        task: the task's name.
        rows: the rows to train and to validate on, whose labels are the classes.
        arguments: those of the command: `labels` and `max_length`.
        owner: the command, for errors.

    Raises:
        CheckpointError, ValueError: the source cannot be read, or is another task.
    """
    import keras_bert_layers as kbl

    source = source_of(source)
    if path := keras_file(source):
        if not path.is_file():
            raise FileNotFoundError(f"`{owner}`: no such file: {source}.")
        if arguments.max_length is not None:
            raise ValueError(f"`{owner}`: --max-length must be left out for a .keras file, which has its own.")
        return kbl.load_task(source, task)
    labels = [label for part in rows for column in part.labels for label in column]
    if task == "classifier":
        problem: dict[str, Any] = {"problem_type": PROBLEM_TYPES[arguments.labels]}
        if arguments.labels != "number":
            names = labels if arguments.labels == "one" else [name for row in labels for name in row]
            problem["class_names"] = _names(names, owner)
        return kbl.BertClassifier(kbl.load_backbone(source), preprocessor=_preprocessor(source, arguments), **problem)
    if task == "token_classifier":
        tags = [tag for row in labels for tag in row]
        preprocessor = _preprocessor(source, arguments)
        return kbl.BertTokenClassifier(kbl.load_backbone(source), _tag_names(tags), preprocessor=preprocessor)
    if task == "question_answerer":
        preprocessor = _preprocessor(source, arguments)
        length = arguments.max_length or min(_WINDOW, preprocessor.max_length)
        stride = min(_STRIDE, length // 3)
        windows = kbl.preprocessing.SpanPreprocessor(preprocessor.tokenizer, max_length=length, stride=stride)
        return kbl.load_task(source, task, preprocessor=windows)
    return kbl.load_task(source, task, preprocessor=_preprocessor(source, arguments))


def _preprocessor(source: str, arguments: argparse.Namespace) -> Any:
    import keras_bert_layers as kbl

    options = {} if arguments.max_length is None else {"max_length": arguments.max_length}
    return kbl.load_preprocessor(source, **options)


def _names(labels: Sequence[str], owner: str) -> list[str]:
    names = sorted(set(labels))
    if len(names) < 2:
        raise ValueError(f"`{owner}`: --label must be a column of at least two classes. Received: {names}.")
    return names


def _tag_names(tags: Sequence[str]) -> list[str]:
    """`O` first, then both tags of each type, also where a file has entities of one word only."""
    kinds = sorted({tag[2:] for tag in tags if tag != "O"})
    return ["O", *(f"{prefix}-{kind}" for kind in kinds for prefix in "BI")]
