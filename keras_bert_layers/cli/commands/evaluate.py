"""Measure a trained model on a file of rows with labels.

Prints the loss and the metrics of the model's task, as `evaluate` in Python returns them: accuracy, the F1 of entities,
or exact match and F1 of answers. For a classifier of one label, the figures of each class follow, if scikit-learn is
installed.

MODEL is what train wrote, a .keras file, or a checkpoint with a trained head: a directory, or hf://owner/name. FILE is
as for train; the columns that a classifier reads beside a text must be in it, by their names.

Examples:
  keras-bert-layers evaluate sentiment test.csv --text review --label sentiment
  keras-bert-layers evaluate names test.conll --json
"""

import argparse
import json
import sys
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.task_table import TASKS
from keras_bert_layers.cli import training_rows
from keras_bert_layers.cli.evaluation import PROBLEM_TYPES, json_number, measured, report_of
from keras_bert_layers.cli.evaluation import TASKS as TRAINED
from keras_bert_layers.cli.models import column_dtypes, load_task_of_texts
from keras_bert_layers.cli.text_rows import check_file

OWNER = "evaluate"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="the model to measure")
    parser.add_argument("file", metavar="FILE", type=Path, help="the rows, UTF-8, plain or gzip")
    parser.add_argument(
        "--task", choices=TASKS, metavar="TASK", help="which of the checkpoint's trained tasks to measure"
    )
    training_rows.add_arguments(parser)
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="rows per step (default: 32)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Measures, and returns 0."""
    checks.positive_integer(OWNER, "--batch-size", arguments.batch_size)
    check_file(arguments.file, owner=OWNER)
    if Path(arguments.model).suffix == ".onnx":
        cure = "An ONNX file has answers and no loss. Give the .keras file or the checkpoint that it was made from."
        raise ValueError(f"`{OWNER}`: MODEL must be a task. Received: {arguments.model}. {cure}")
    loaded = load_task_of_texts(arguments.model, arguments.task, owner=OWNER, argument="MODEL")
    model, task = loaded.model, str(loaded.task)
    if task not in TRAINED:
        raise ValueError(f"`{OWNER}`: MODEL must be one of {', '.join(TRAINED)}. Received: {task}.")
    kinds = {problem: kind for kind, problem in PROBLEM_TYPES.items()}
    # The classes of a model without their names are numbers.
    arguments.labels = kinds[model.problem_type] if getattr(model, "class_names", None) else "number"
    dtypes = column_dtypes(model)
    rows = training_rows.read_rows(arguments.file, task, arguments, columns=[*dtypes], owner=OWNER)
    rows = rows.with_values([*dtypes], dtypes, owner=OWNER)
    metrics = measured(model, rows, arguments.batch_size)
    if arguments.json:
        values = {name: json_number(value) for name, value in metrics.items()}
        lines = [json.dumps({"task": task, "rows": rows.num_rows, **values})]
    else:
        lines = [f"rows: {rows.num_rows}", *(f"{name}: {value:.4g}" for name, value in metrics.items())]
        lines += str(report_of(model, rows) or "").splitlines()
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0
