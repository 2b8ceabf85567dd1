"""`keras-bert-layers predict`: texts in, JSON lines out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from keras_bert_layers._cli.models import TASKS
from keras_bert_layers._cli.terminal import progress
from keras_bert_layers._cli.text_rows import FORMATS, TextRow, batches, rows_of_file, rows_of_words

OWNER = "predict"
HELP = "answer texts with a trained model, as JSON lines"
DESCRIPTION = """\
Answers texts with a trained model. Each answer is one line of JSON on stdout, in the order of the texts; answers
appear batch by batch, and memory does not grow with the number of texts.

MODEL is a .keras file, a SavedModel that was exported, or a checkpoint that states a task: a directory, or
hf://owner/name. All three give the same answers.

where texts come from:
  TEXT ...      one text each. For a model of two texts, these in turn: TEXT TEXT_PAIR, or QUESTION CONTEXT. For
                multiple choice one row: PROMPT CHOICE CHOICE ...
  --file FILE   one row a line, UTF-8, plain or gzip
  -             the same from stdin; also where there is neither TEXT nor --file

A line is the text itself. For a model of more than one text, tabs separate them. Texts that hold tabs or line ends
come as JSON lines (--format jsonl, or a file's name that ends in .jsonl): objects with the model's own names, such as
{"question": "...", "context": "..."} or {"prompt": "...", "choices": ["...", "..."]}; other keys are passed over."""
EXAMPLES = """\
examples:
  keras-bert-layers predict sentiment.keras "A warm, funny film." "Two dull hours."
  keras-bert-layers predict hf://owner/name --file reviews.txt > answers.jsonl
  keras-bert-layers predict squad-model "Who wrote it?" "It was written by Mary Shelley."
  zcat pairs.tsv.gz | keras-bert-layers predict exported-model - --batch-size 64 | head"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="what answers")
    parser.add_argument("texts", metavar="TEXT", nargs="*", help="what to answer; - for stdin; behind -- if it has a -")
    parser.add_argument("--file", type=Path, metavar="FILE", help="a row a line")
    parser.add_argument("--format", choices=FORMATS, help="what a line is (default: by the file's name, else lines)")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="rows at once (default: 32)")
    parser.add_argument("--task", choices=TASKS, metavar="TASK", help="which of the checkpoint's trained tasks to ask")


def run(arguments: argparse.Namespace) -> int:
    """Answers; 0."""
    from keras_bert_layers._internal import checks

    checks.positive_integer(OWNER, "--batch-size", arguments.batch_size)
    if arguments.texts and arguments.file is not None:
        raise ValueError(f"`{OWNER}`: texts must come from TEXT or from --file, not from both.")
    if arguments.file is not None and not arguments.file.is_file():
        raise FileNotFoundError(f"`{OWNER}`: no such file: {arguments.file}.")
    from keras_bert_layers._cli.answer_lines import answer_lines
    from keras_bert_layers._cli.answerers import open_answerer

    answerer = open_answerer(arguments.model, arguments.task, owner=OWNER)
    rows = _rows(arguments, answerer.inputs)
    # On one screen the bar would stand between the answers.
    with progress("Answering", None, unit="rows", shown=not sys.stdout.isatty()) as advance:
        for batch in batches(rows, arguments.batch_size):
            try:
                answers = answerer.ask(batch)
            except ValueError as error:
                raise ValueError(f"{_span(batch)}: {error}") from error
            for line in answer_lines(answers, batch, answerer.inputs):
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            advance(len(batch))
    return 0


def _rows(arguments: argparse.Namespace, inputs: Mapping[str, int]) -> Iterator[TextRow]:
    if arguments.texts and arguments.texts != ["-"]:
        return rows_of_words(arguments.texts, inputs)
    return rows_of_file(arguments.file, inputs, form=arguments.format)


def _span(batch: list[TextRow]) -> str:
    first, last = batch[0].place, batch[-1].place
    return first if first == last else f"from {first} to {last}"
