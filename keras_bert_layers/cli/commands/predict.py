"""Run a trained model on texts, with JSON lines as output.

Each answer is one line of JSON on stdout, in the order of the texts. Answers appear batch by batch, and memory does not
grow with the number of texts.

MODEL is a .keras file, an exported SavedModel or .onnx file, or a checkpoint with a trained head: a directory, or
hf://owner/name. All give the same answers.

sources of texts:
  TEXT ...      one text each. For a model of two texts, these in turn: TEXT TEXT_PAIR, or QUESTION CONTEXT. For
                multiple choice one row: PROMPT CHOICE CHOICE ...
  --file FILE   one row per line, UTF-8, plain or gzip
  -             the same from stdin; also if there is neither TEXT nor --file

A line is the text itself. For a model of more than one text, tabs separate the texts. Texts that contain tabs or line
ends come as JSON lines (--format jsonl, or a file name that ends in .jsonl): objects with the model's input names, such
as {"question": "...", "context": "..."} or {"prompt": "...", "choices": ["...", "..."]}; other keys are ignored.

A table (.csv, .tsv, .jsonl) is read by its columns where --text names the one of texts, and always for a model that
reads columns beside a text. It then has these columns too, as in training; JSON lines have a key for each.

Examples:
  keras-bert-layers predict sentiment.keras "A warm, funny film." "Two dull hours."
  keras-bert-layers predict hf://owner/name --file reviews.txt > answers.jsonl
  keras-bert-layers predict sentiment --file reviews.csv --text review
  keras-bert-layers predict squad-model "Who wrote it?" "It was written by Mary Shelley."
  zcat pairs.tsv.gz | keras-bert-layers predict exported-model - --batch-size 64 | head
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_layers.checkpoints.task_table import TASKS
from keras_bert_layers.cli import text_rows
from keras_bert_layers.cli.answer_lines import answer_lines
from keras_bert_layers.cli.models import PROGRAM_FILE, inputs_of, load_saved_model, load_task_of_texts
from keras_bert_layers.cli.onnx_file import SUFFIX, OnnxAnswerer
from keras_bert_layers.cli.terminal import progress, report
from keras_bert_layers.cli.text_rows import Inputs, TextRow, columns_of
from keras_bert_layers.cli.training_rows import TABLES, rows_of_table
from keras_bert_layers.export.signature import TEXT_INPUTS

if TYPE_CHECKING:
    from keras_bert_layers.tasks import Task

OWNER = "predict"

#: Options may stand between its words.
WORDS = "texts"

_SIGNATURE = "serving_default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="the model to run")
    parser.add_argument("texts", metavar="TEXT", nargs="*", help="an input; - for stdin; after -- if it starts with -")
    parser.add_argument("--file", type=Path, metavar="FILE", help="one row per line")
    parser.add_argument("--text", metavar="COLUMN", help="the column of a table with the (first) texts of a row")
    parser.add_argument("--pair", metavar="COLUMN", help="the column of its second texts")
    text_rows.add_arguments(parser)
    parser.add_argument("--task", choices=TASKS, metavar="TASK", help="which of the checkpoint's trained tasks to run")


def run(arguments: argparse.Namespace) -> int:
    """Runs the model on all rows, and returns 0."""
    if arguments.texts and arguments.file is not None:
        raise ValueError(f"`{OWNER}`: texts must come from TEXT or from --file, not from both.")
    text_rows.check_arguments(OWNER, arguments, arguments.file)
    is_table = arguments.file is not None and text_rows.suffix_of(arguments.file.name) in TABLES
    if not (is_table and arguments.format is None) and (arguments.text or arguments.pair):
        raise ValueError(f"`{OWNER}`: --text and --pair are for --file with a table: {', '.join(TABLES)}.")
    _warn_of_words(arguments)
    answerer = open_answerer(arguments.model, arguments.task)
    rows = _rows(arguments, answerer.inputs, is_table=is_table)
    # No bar if the answers go to the same screen.
    with progress("Answering", None, unit="rows", shown=not sys.stdout.isatty()) as advance:
        for batch in text_rows.batches(rows, arguments.batch_size):
            try:
                answers = answerer.answer(batch)
            except ValueError as error:
                first, last = batch[0].position, batch[-1].position
                raise ValueError(f"{first if first == last else f'from {first} to {last}'}: {error}") from error
            sys.stdout.writelines(f"{line}\n" for line in answer_lines(answers, batch, answerer.inputs))
            sys.stdout.flush()
            advance(len(batch))
    return 0


def _rows(arguments: argparse.Namespace, inputs: Inputs, *, is_table: bool) -> Iterator[TextRow]:
    """The rows, of a table by its columns where these are named or the model reads columns."""
    if arguments.texts and arguments.texts != ["-"]:
        return text_rows.rows_of_words(arguments.texts, inputs, owner=OWNER)
    texts = [name for name, kind in inputs.items() if isinstance(kind, int)]
    columns = dict(zip(texts, (arguments.text, arguments.pair), strict=False))
    if any(columns.values()) or (is_table and arguments.format is None and len(texts) < len(inputs)):
        return rows_of_table(arguments.file, inputs, columns, owner=OWNER)
    if arguments.file is not None and arguments.format is None and text_rows.suffix_of(arguments.file.name) == ".csv":
        report(
            "warning",
            f"each line of {arguments.file}, the first too, is taken as one text with all of its columns. Name the "
            'column of texts by --text, or write JSON lines such as {"text": "..."} in a file that ends in .jsonl.',
        )
    return text_rows.rows_of_file(arguments.file, inputs, form=arguments.format, owner=OWNER)


def _warn_of_words(arguments: argparse.Namespace) -> None:
    """Warns of texts that are probably meant as files."""
    if found := [text for text in arguments.texts if os.path.isfile(text)]:
        report("warning", f"{found[0]!r} is taken as a text, and a file has this name. `--file` reads the lines of it.")


def open_answerer(source: str, task: str | None) -> TaskAnswerer | SavedModelAnswerer | OnnxAnswerer:
    """Loads the model that answers.

    Args:
        source: the directory of a SavedModel, an ONNX file, or a source that `load_model` takes.
        task: as for `load_model`.

    Returns:
        An object with `inputs` and `answer`. All kinds give the same answers; a SavedModel that has a bound on the
        size of texts also returns `bytes_cut`.

    Raises:
        CheckpointError, ValueError: the source cannot be read, or does not answer.
    """
    is_onnx, is_saved_model = Path(source).suffix == SUFFIX, (Path(source) / PROGRAM_FILE).is_file()
    if task is not None and (is_onnx or is_saved_model):
        kind = "an ONNX file" if is_onnx else "a SavedModel"
        raise ValueError(f"`{OWNER}`: --task is for checkpoints; {kind} has one task. Received: {task}.")
    if is_onnx:
        return OnnxAnswerer(Path(source), owner=OWNER)
    if is_saved_model:
        return SavedModelAnswerer(source)
    return TaskAnswerer(load_task_of_texts(source, task, owner=OWNER, argument="MODEL").model)


class TaskAnswerer:
    """Answers with a Keras task.

    Args:
        task: a task with a preprocessor.

    Attributes:
        inputs: those of the task, as `text_rows` takes them.
    """

    def __init__(self, task: Task):
        self._task = task
        self.inputs = inputs_of(task)

    def answer(self, rows: Sequence[TextRow]) -> dict[str, np.ndarray]:
        """The answers to some rows: name -> array, rows first, strings as `str`."""
        return self._task.answer(columns_of(rows), batch_size=len(rows))


class SavedModelAnswerer:
    """Answers with a SavedModel that `task.export` wrote, in TensorFlow alone.

    Args:
        source: its directory.

    Attributes:
        inputs: those of the model, as `text_rows` takes them.

    Raises:
        ValueError: it cannot be read, or takes no strings.
    """

    def __init__(self, source: str):
        cure = "Give the checkpoint or the `.keras` file that it was made from."
        self._model = load_saved_model(source, owner=OWNER, cure=cure)
        signature = self._model.signatures.get(_SIGNATURE)
        specs = {} if signature is None else signature.structured_input_signature[1]
        texts = [name for name in TEXT_INPUTS if name in specs]
        beside = {name: spec.dtype.name for name, spec in specs.items() if name not in texts and spec.shape.rank == 1}
        if not texts or len(texts) + len(beside) < len(specs) or any(specs[name].dtype != "string" for name in texts):
            raise ValueError(f"`{OWNER}`: {source} must have a signature {_SIGNATURE!r} of strings. Found: {[*specs]}.")
        self._signature = signature
        self.inputs: Inputs = {**{name: specs[name].shape.rank for name in texts}, **beside}

    def answer(self, rows: Sequence[TextRow]) -> dict[str, np.ndarray]:
        """The answers to some rows: name -> array, rows first, strings as bytes."""
        import tensorflow as tf

        def tensor(kind: int | str, values: Sequence[Any]) -> Any:
            if kind != 2:
                return tf.constant(values, tf.string if kind == 1 else kind)
            return tf.ragged.constant(values, dtype=tf.string).to_tensor("")  # choices, padded with empty ones

        columns = zip(*(row.texts for row in rows), strict=True)
        given = {name: tensor(kind, next(columns)) for name, kind in self.inputs.items()}
        try:
            answers = self._signature(**given)
        except tf.errors.OpError as error:
            raise ValueError(f"`{OWNER}`: {error.message}") from error
        return {name: tensor.numpy() for name, tensor in answers.items()}
