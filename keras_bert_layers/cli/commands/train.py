"""Train a task on your own file, without Python.

Trains, validates after every epoch, stops when validation does not improve, and keeps the best weights. DIR then holds
model.keras, report.json, training.html, and for a classifier of one label report.html with its errors, if scikit-learn
is installed. With TensorFlow and tensorflow-text, it also holds saved_model/1, which takes strings.
DIR is written completely or not at all.

MODEL is a directory in HuggingFace's, sentence-transformers', Google's or KerasHub's layout; a name,
hf://owner/name, or a preset; or a .keras file of the same task, to train it further. A classifier and a
token_classifier also start from a masked_lm that `train` wrote, with its encoder and a new head.

FILE, and the task by the end of its name; --task selects another:
  .csv .tsv .jsonl      classifier; --text and --label name columns, --pair that of second texts; quotation marks of a
                        .tsv are text where they do not enclose whole cells, and errors in a .csv
  .conll .bio .iob      token_classifier: a word and its tag on each line; .conll.txt too
  .json                 question_answerer: the format of SQuAD
  .txt                  masked_lm: a text on each line; token_classifier if each is a word and its tag
                        --columns names columns of numbers and categories that a classifier reads beside the text
  --task sentence_encoder, cross_encoder: a table with --text, --pair and --label, a number from 0 to 1; without
                        --label, a sentence_encoder learns that the two texts of a row belong together

Examples:
  keras-bert-layers train reviews.csv --text review --label sentiment --from bert-base --to sentiment
  keras-bert-layers train stars.csv --text review --label stars --labels number --from bert-base --to stars
  keras-bert-layers train reviews.csv --text review --label sentiment --columns age country --from m --to sentiment
  keras-bert-layers train names.conll --validation dev.conll --from bert-base --to names --epochs 5
  keras-bert-layers train pairs.tsv --task cross_encoder --text query --pair passage --label score --from m --to ranker
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers.checkpoints.checkpoint_error import first_names
from keras_bert_layers.checkpoints.task_table import task_of
from keras_bert_layers.cli import training_rows
from keras_bert_layers.cli.columns import NUMBERS, column_kind, text_of
from keras_bert_layers.cli.evaluation import PROBLEM_TYPES, TASKS, json_number, measured, report_of
from keras_bert_layers.cli.models import EXPORT, MODEL, column_dtypes, keras_file, source_of
from keras_bert_layers.cli.processes import add_process_arguments, export, files_of_first, join_processes
from keras_bert_layers.cli.terminal import counted, quiet_start, report
from keras_bert_layers.cli.text_rows import check_file
from keras_bert_layers.cli.training_rows import OWNER, TrainingRows, read_rows, task_of_file
from keras_bert_layers.cli.written_models import check_destination

if TYPE_CHECKING:
    import keras

    from keras_bert_layers.tasks import ClassificationReport

# Tasks that get a new head for the classes of the rows, and those that train an encoder for them.
_NEW_HEADS, _PRETRAINING = ("classifier", "token_classifier"), ("masked_lm", "pretrainer")

# Above, a pretrained encoder forgets what it has learned; what is left is a question.
_HIGHEST_RATE = 1e-3

_NAMES_IN_A_LINE = 10

_LONG_TEXTS = ("classifier", "cross_encoder", "sentence_encoder")

# Of the windows of a context, in tokens, as in google-research/bert `run_squad.py`.
_WINDOW, _STRIDE = 384, 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="the rows to train on, UTF-8, plain or gzip")
    add("--from", dest="source", required=True, metavar="MODEL", help="the model to start from")
    add("--to", required=True, type=Path, metavar="DIR", help="where to write: a new path, or an empty directory")
    add("--force", action="store_true", help="replace the model at DIR")
    add("--task", choices=TASKS, metavar="TASK", help=f"one of {', '.join(TASKS)} (default: by the file's name)")
    training_rows.add_arguments(parser)
    shown = "columns beside the text of a classifier: of numbers, with empty cells for missing ones, or else categories"
    add("--columns", nargs="+", default=[], metavar="COLUMN", help=shown)
    add("--labels", choices=PROBLEM_TYPES, default="one", help="the labels of a row of a classifier (default: one)")
    add("--validation", type=Path, metavar="FILE", help="rows to validate on (default: a share of FILE)")
    add("--share", type=float, default=0.1, metavar="X", help="the share of FILE to validate on (default: 0.1)")
    add("--epochs", type=int, default=3, metavar="N", help="passes over the rows, at most (default: 3)")
    add("--patience", type=int, default=2, metavar="N", help="epochs without a better validation loss (default: 2)")
    add("--batch-size", type=int, default=32, metavar="N", help="rows per step (default: 32)")
    add("--learning-rate", type=float, default=5e-5, metavar="X", help="the highest rate (default: 5e-5)")
    add("--max-length", type=int, metavar="N", help="tokens per row; longer rows are cut (default: the model's)")
    add("--long-texts", choices=("head_tail", "windows"), help="read both ends, or all, of longer rows instead")
    add("--class-weight", choices=("balanced",), help="let every class count the same in the loss, however rare it is")
    shown = "how many blocks, from the embedding on, are not trained, or 'all' of the encoder (default: none)"
    add("--freeze", metavar="N", help=shown)
    add("--calibrate", action="store_true", help="correct the probabilities by the validation rows, after training")
    shown = "the random state of the validation rows, the order and the new head (default: 7)"
    add("--seed", type=int, default=7, metavar="N", help=shown)
    add_process_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Trains, writes the directory, and returns 0."""
    check_file(arguments.file, owner=OWNER)
    task, reason = (arguments.task, "--task names it") if arguments.task else task_of_file(arguments.file)
    report(OWNER, f"trains a {task}, because {reason}")
    _check(arguments)
    _check_task(task, arguments)
    check_destination(arguments.to, replace=arguments.force, owner=OWNER, argument="DIR")
    training, validation = _rows(task, arguments)  # first, as Keras takes seconds to be imported
    kinds = _column_kinds((training, validation), arguments.columns)
    with quiet_start():
        import keras

        import keras_bert_layers.checkpoints.task_loader  # noqa: F401  and the backend
    keras.utils.set_random_seed(arguments.seed)
    is_first = join_processes(arguments)
    model = new_task(arguments.source, task, (training, validation), arguments, kinds)
    dtypes = column_dtypes(model)
    if {*dtypes} != {*arguments.columns}:
        raise ValueError(checks.message(OWNER, "--columns", f"name those of MODEL, {[*dtypes]}", arguments.columns))
    training, validation = (part.with_values(arguments.columns, dtypes) for part in (training, validation))
    report(OWNER, f"{counted(training.num_rows, 'row')} to train on, {validation.num_rows} to validate on")
    if names := getattr(model, "class_names", None):
        report(OWNER, f"{len(names)} classes: {first_names(names, _NAMES_IN_A_LINE)}")
    _freeze(model.backbone, arguments.freeze)
    history = _fit(model, training, validation, arguments)
    if arguments.calibrate:
        temperature = model.calibrate(validation.x, validation.y, batch_size=arguments.batch_size).temperature
        report(OWNER, f"calibrated by the validation rows, with the temperature {temperature:.3g}")
    metrics = measured(model, validation, arguments.batch_size)
    found = report_of(model, validation)
    facts = {
        "task": task,
        "from": arguments.source,
        "rows": training.num_rows,
        "validation_rows": validation.num_rows,
        "epochs": len(history["loss"]),
        "validation": {name: json_number(value) for name, value in metrics.items()},
        "history": {name: [*map(json_number, values)] for name, values in history.items()},
    }
    with files_of_first(arguments.to) as path:
        if is_first:
            _write(model, facts, found, metrics, arguments)
        else:
            model.save(path / MODEL)
    return 0


def _write(
    model: keras.Model,
    facts: dict[str, Any],
    found: ClassificationReport | None,
    metrics: dict[str, float],
    arguments: argparse.Namespace,
) -> None:
    """Writes the directory, and reports."""
    with atomic_write(arguments.to, owner=OWNER, argument="DIR", replace=arguments.force) as folder:
        folder.mkdir()
        model.save(folder / MODEL)
        if not export(model, folder / MODEL, folder / EXPORT / "1"):
            report(
                "warning", f"no SavedModel, which needs TensorFlow and tensorflow-text; `serve` answers with {MODEL}"
            )
        (folder / "report.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        lines = _write_pictures(found, facts["history"], folder)
    sys.stdout.writelines(f"{line}\n" for line in [*_lines(facts, metrics), *lines])
    sys.stdout.write(f"{arguments.to}: {type(model).__name__}, {model.count_params():,} parameters\n")


def _check(arguments: argparse.Namespace) -> None:
    for name in ("epochs", "batch_size"):
        checks.positive_integer(OWNER, f"--{name.replace('_', '-')}", getattr(arguments, name))
    checks.whole_number(OWNER, "--patience", arguments.patience)
    rate = checks.positive_number(OWNER, "--learning-rate", arguments.learning_rate)
    if rate > _HIGHEST_RATE:
        report("warning", f"--learning-rate {rate:g} is high. BERT is trained with 1e-5 to 1e-4, mostly; is it a typo?")
    if not 0 < arguments.share < 1:
        raise ValueError(checks.message(OWNER, "--share", "be greater than 0 and less than 1", arguments.share))


def _check_task(task: str, arguments: argparse.Namespace) -> None:
    """Refuses options that the task does not have; ValueError."""
    kind = arguments.labels if task == "classifier" else ""
    for option, given, is_right, tasks in (
        ("--class-weight", arguments.class_weight, kind == "one", "a classifier of one label"),
        ("--calibrate", arguments.calibrate, kind in ("one", "several"), "a classifier of one label or several"),
        ("--long-texts", arguments.long_texts, task in _LONG_TEXTS, ", ".join(_LONG_TEXTS)),
        ("--columns", arguments.columns, task == "classifier", "a classifier"),
    ):
        if given and not is_right:
            raise ValueError(f"`{OWNER}`: {option} is for {tasks}. Received: a {task}.")
    if arguments.freeze not in (None, "all") and not arguments.freeze.isdecimal():
        raise ValueError(checks.message(OWNER, "--freeze", "be a number of blocks, or 'all'", arguments.freeze))


def _freeze(backbone: keras.Model, given: str | None) -> None:
    """Freezes the encoder, or its embedding and so many of its lowest blocks."""
    if given == "all":
        backbone.trainable = False
    elif given is not None:
        most = backbone.config.num_layers
        if int(given) > most:
            raise ValueError(checks.message(OWNER, "--freeze", f"be at most {most}, the blocks of the model", given))
        backbone.check_blocks(OWNER, "--freeze", int(given))
        for layer in (backbone.get_layer("embedding"), *backbone.blocks[: int(given)]):
            layer.trainable = False


def _rows(task: str, arguments: argparse.Namespace) -> tuple[TrainingRows, TrainingRows]:
    """The rows to train on and to validate on."""
    rows = read_rows(arguments.file, task, arguments, columns=arguments.columns)
    if arguments.validation is not None:
        return rows, read_rows(arguments.validation, task, arguments, columns=arguments.columns)
    if rows.num_rows < 2:
        cure = "Add rows, or give --validation."
        raise ValueError(f"`{OWNER}`: {arguments.file} must have two rows, one to validate on. Received: 1 row. {cure}")
    return rows.split(arguments.share, arguments.seed)


def _column_kinds(rows: Sequence[TrainingRows], names: Sequence[str]) -> dict[str, str]:
    """How a `FeatureSpace` reads each of the columns, which are the last ones of the rows."""
    kinds = {}
    for place, name in enumerate(names, start=-len(names)):
        cells = [cell for part in rows for cell in part.texts[place]]
        kinds[name] = column_kind(name, cells, owner=OWNER)
        number = len({*map(text_of, cells)} - {""})
        what = "numbers" if kinds[name] == NUMBERS else f"{number} categories"
        report(OWNER, f"column {name!r} is read as {what}; {sum(not text_of(cell) for cell in cells)} are missing")
    return kinds


def new_task(
    source: str,
    task: str,
    rows: Iterable[TrainingRows],
    arguments: argparse.Namespace,
    columns: Mapping[str, str] | None = None,
) -> Any:
    """A task for some rows.

    A `.keras` file is trained further. From other sources, and from a `.keras` file of a masked language model, a
    classifier and a token classifier get a new head for the classes of the rows; other tasks keep the source's head if
    it has a trained one.

    Args:
        source: a `.keras` file, a directory, or a name.
        task: the task's name.
        rows: the rows to train and to validate on, whose labels are the classes.
        arguments: those of the command: `labels`, `long_texts` and `max_length`.
        columns: the features of the columns beside a text, as a `FeatureSpace` takes them, for a new classifier.

    Raises:
        CheckpointError, ValueError: the source cannot be read, or is another task.
    """
    import keras

    import keras_bert_layers as kbl

    source = source_of(source)
    if path := keras_file(source):
        check_file(path, owner=OWNER)
        if arguments.max_length is not None:
            raise ValueError(f"`{OWNER}`: --max-length must be left out for a .keras file, which has its own.")
        model: Any = kbl.load_task(source, None if task in _NEW_HEADS else task)
        own = getattr(task_of(model), "name", None)
        if own == task:
            if arguments.long_texts:
                raise ValueError(f"`{OWNER}`: --long-texts must be left out for a .keras file, which has its own.")
            return model
        if own not in _PRETRAINING:
            return kbl.load_task(source, task)  # raises, with both names
        backbone, preprocessor = model.backbone, model.preprocessor
    elif task in _NEW_HEADS:
        backbone, preprocessor = kbl.load_backbone(source), _preprocessor(source, arguments)
    labels = [label for part in rows for column in part.labels for label in column]
    if task == "classifier":
        problem: dict[str, Any] = {"problem_type": PROBLEM_TYPES[arguments.labels], "long_texts": arguments.long_texts}
        if arguments.labels != "number":
            problem["class_names"] = _class_names(labels, arguments)
        problem["columns"] = keras.utils.FeatureSpace(dict(columns), output_mode="concat") if columns else None
        return kbl.BertClassifier(backbone, preprocessor=preprocessor, **problem)
    if task == "token_classifier":
        tags = [tag for row in labels for tag in row]
        return kbl.BertTokenClassifier(backbone, _tag_names(tags), preprocessor=preprocessor)
    if task == "question_answerer":
        preprocessor = _preprocessor(source, arguments)
        length = arguments.max_length or min(_WINDOW, preprocessor.max_length)
        stride = min(_STRIDE, length // 3)
        windows = kbl.preprocessing.SpanPreprocessor(preprocessor.tokenizer, max_length=length, stride=stride)
        return kbl.load_task(source, task, preprocessor=windows)
    long = {"long_texts": arguments.long_texts} if arguments.long_texts else {}
    return kbl.load_task(source, task, preprocessor=_preprocessor(source, arguments), **long)


def _class_names(labels: Sequence[Any], arguments: argparse.Namespace) -> list[str]:
    """The classes in the labels of all rows, sorted; ValueError if there are not two, or none has two rows."""
    found = labels if arguments.labels == "one" else [name for row in labels for name in row]
    names = sorted({*found})
    if len(names) < 2:
        raise ValueError(f"`{OWNER}`: --label must be a column of at least two classes. Received: {names}.")
    if len(names) == len(found):
        cure = "Name the column of classes, or give --labels number for numbers."
        received = f"{len(names)} values, each of them once: {first_names(names, _NAMES_IN_A_LINE)}"
        raise ValueError(
            f"`{OWNER}`: --label must be a column of classes with several rows. Received: {received}. {cure}"
        )
    return names


def _preprocessor(source: str, arguments: argparse.Namespace) -> Any:
    import keras_bert_layers as kbl

    options = {} if arguments.max_length is None else {"max_length": arguments.max_length}
    return kbl.load_preprocessor(source, **options)


def _tag_names(tags: Sequence[str]) -> list[str]:
    """`O` first, then both tags of each type, also where a file has entities of one word only."""
    from keras_bert_layers.tag_scheme import bio_tag_names

    return bio_tag_names(sorted({tag[2:] for tag in tags if tag != "O"}))


def _fit(
    model: keras.Model, training: TrainingRows, validation: TrainingRows, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Trains with linear warm-up and decay; the history of losses and metrics."""
    import keras

    from keras_bert_layers.optimizers import WarmupLinearDecay, adamw

    num_rows = training.num_rows
    if hasattr(model.preprocessor, "num_windows"):  # a row of the answerer is as many windows as its context needs
        num_rows = int(sum(model.preprocessor.num_windows(training.x).numpy()))
    num_steps = math.ceil(num_rows / arguments.batch_size) * arguments.epochs
    model.compile(adamw(WarmupLinearDecay(arguments.learning_rate, num_steps, num_warmup_steps=num_steps // 10)))
    callbacks = [keras.callbacks.EarlyStopping(patience=arguments.patience, restore_best_weights=True)]
    has_bar = sys.stderr.isatty() and sys.stdout.isatty()
    if not has_bar:
        callbacks.append(keras.callbacks.LambdaCallback(on_epoch_end=_report_epoch(arguments.epochs, num_steps)))
    history = model.fit(
        training.x,
        training.y,
        arguments.batch_size,
        arguments.epochs,
        verbose=int(has_bar),
        callbacks=callbacks,
        class_weight=arguments.class_weight,
        validation_data=(validation.x, validation.y),
    )
    return {name: [float(value) for value in values] for name, values in history.history.items()}


def _report_epoch(num_epochs: int, num_steps: int) -> Callable[[int, dict[str, float]], None]:
    """A function that reports an epoch in one line; where there is no bar, nothing else shows that training goes on."""
    report(OWNER, f"{counted(num_epochs, 'epoch')} of {counted(num_steps // num_epochs, 'step')}")
    start = time.monotonic()

    def report_epoch(epoch: int, logs: dict[str, float]) -> None:
        values = ", ".join(f"{name} {value:.4g}" for name, value in logs.items())
        report(OWNER, f"epoch {epoch + 1} of {num_epochs}, {time.monotonic() - start:.0f} s: {values}")

    return report_epoch


def _write_pictures(found: ClassificationReport | None, history: dict[str, Any], folder: Path) -> list[str]:
    """Writes the pages, and returns the lines of a classifier's report, if there is one."""
    from keras_bert_layers.visualization import ReportPicture, TrainingCurves

    TrainingCurves(history).save(folder / "training.html")
    if found is None:
        return []
    ReportPicture(found).save(folder / "report.html")
    return str(found).splitlines()


def _lines(facts: dict[str, Any], metrics: dict[str, float]) -> list[str]:
    """The result for people."""
    losses = facts["history"]["val_loss"]
    best = 1 + min(range(len(losses)), key=lambda epoch: math.inf if losses[epoch] is None else losses[epoch])
    weights = f"the weights are those of epoch {best}, with the lowest validation loss"
    epochs = f"{counted(facts['epochs'], 'epoch')}; {weights}"
    return [epochs, *(f"validation {name}: {value:.4g}" for name, value in metrics.items())]
