"""Run a trained model on texts, with JSON lines as output.

Each answer is one line of JSON on stdout, in the order of the texts. Answers appear batch by batch, and memory does not
grow with the number of texts.

MODEL is a .keras file, an exported SavedModel, or a checkpoint with a trained head: a directory, or hf://owner/name.
All three give the same answers.

sources of texts:
  TEXT ...      one text each. For a model of two texts, these in turn: TEXT TEXT_PAIR, or QUESTION CONTEXT. For
                multiple choice one row: PROMPT CHOICE CHOICE ...
  --file FILE   one row per line, UTF-8, plain or gzip
  -             the same from stdin; also if there is neither TEXT nor --file

A line is the text itself. For a model of more than one text, tabs separate the texts. Texts that contain tabs or line
ends come as JSON lines (--format jsonl, or a file name that ends in .jsonl): objects with the model's input names, such
as {"question": "...", "context": "..."} or {"prompt": "...", "choices": ["...", "..."]}; other keys are ignored.

Examples:
  keras-bert-layers predict sentiment.keras "A warm, funny film." "Two dull hours."
  keras-bert-layers predict hf://owner/name --file reviews.txt > answers.jsonl
  keras-bert-layers predict squad-model "Who wrote it?" "It was written by Mary Shelley."
  zcat pairs.tsv.gz | keras-bert-layers predict exported-model - --batch-size 64 | head
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from keras_bert_layers.checkpoints.task_table import TASKS
from keras_bert_layers.cli import text_rows
from keras_bert_layers.cli.terminal import progress

OWNER = "predict"
#: Options may stand between its words.
WORDS = "texts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("model", metavar="MODEL", help="the model to run")
    parser.add_argument("texts", metavar="TEXT", nargs="*", help="an input; - for stdin; after -- if it starts with -")
    parser.add_argument("--file", type=Path, metavar="FILE", help="one row per line")
    text_rows.add_arguments(parser)
    parser.add_argument("--task", choices=TASKS, metavar="TASK", help="which of the checkpoint's trained tasks to run")


def run(arguments: argparse.Namespace) -> int:
    """Runs the model on all rows, and returns 0."""
    if arguments.texts and arguments.file is not None:
        raise ValueError(f"`{OWNER}`: texts must come from TEXT or from --file, not from both.")
    text_rows.check_arguments(OWNER, arguments, arguments.file)
    from keras_bert_layers.cli.answers import answer_lines, open_answerer

    answerer = open_answerer(arguments.model, arguments.task, owner=OWNER)
    if arguments.texts and arguments.texts != ["-"]:
        rows = text_rows.rows_of_words(arguments.texts, answerer.inputs, owner=OWNER)
    else:
        rows = text_rows.rows_of_file(arguments.file, answerer.inputs, form=arguments.format, owner=OWNER)
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
