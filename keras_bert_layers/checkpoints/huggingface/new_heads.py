"""`new_head_options`: what a checkpoint without a trained head of a task says about a new one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.huggingface.heads import (
    CLASSIFIERS,
    Shapes,
    classifier_outputs,
    has_rows,
    stated_classes,
)
from keras_bert_layers.checkpoints.huggingface.labels import stated_labels
from keras_bert_layers.checkpoints.task_table import TASKS
from keras_bert_layers.checkpoints.weights.reports import first_names
from keras_bert_layers.checkpoints.weights.table import POOLER_ROWS

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
