"""Rows of a file as vectors of a sentence encoder, and the CSV file of what a command finds in them."""

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers._internal.files.disk_space import check_writable
from keras_bert_layers.cli.models import LoadedModel, keras_file, load_model, load_task_of_texts, source_of
from keras_bert_layers.cli.terminal import counted, progress
from keras_bert_layers.cli.text_rows import check_file, rows_of_file, suffix_of
from keras_bert_layers.cli.training_rows import TABLES, read_table

_TASK = "sentence_encoder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every command that encodes a file."""
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="the rows, UTF-8, plain or gzip")
    add("--model", required=True, metavar="MODEL", help="a sentence encoder")
    add("--text", default="text", metavar="COLUMN", help="the column of texts of a table (default: text)")
    add("--to", type=Path, metavar="OUT.csv", help="the CSV file to write")
    add("--batch-size", type=int, default=32, metavar="N", help="rows per step (default: 32)")


def check_output(path: Path | None, argument: str, suffix: str, arguments: argparse.Namespace, *, owner: str) -> None:
    """Raises a ValueError for a path to write with another suffix, a directory, or the file that is read.

    Raises an OSError for one that cannot be written to.
    """
    is_wrong = path and (path.suffix != suffix or path.is_dir() or path.resolve() == arguments.file.resolve())
    if is_wrong:
        raise ValueError(checks.message(owner, argument, f"be a file that ends in {suffix}, and not FILE", str(path)))
    if path is not None:
        check_writable(path, owner=owner, argument=argument)


def encode(arguments: argparse.Namespace, *, least: int = 1, owner: str) -> tuple[list[int], list[str], np.ndarray]:
    """Reads the rows of a file that are not blank, and encodes them; a progress bar shows how far it is.

    Args:
        arguments: those of the command.
        least: how many different texts there must be.
        owner: the command, for errors.

    Returns:
        Where each row is in the file: its number in a table without the header, otherwise its line, from 1. Their
        texts. And their vectors, float32 `(rows, vector_dim)`.

    Raises:
        ValueError, OSError: the file or the model cannot be read or has the wrong kind; there are too few texts.
    """
    checks.positive_integer(owner, "--batch-size", arguments.batch_size)
    check_file(arguments.file, owner=owner)
    check_output(arguments.to, "--to", ".csv", arguments, owner=owner)
    if suffix_of(arguments.file.name) in TABLES:
        (column,) = read_table(arguments.file, [arguments.text], owner=owner, may_be_empty=arguments.text)
    else:
        column = [row.texts[0] for row in rows_of_file(arguments.file, {"text": 1}, form="lines", owner=owner)]
    rows = {number: text for number, cell in enumerate(column, start=1) if (text := str(cell).strip())}
    texts = list(rows.values())
    if (found := len(set(texts))) < least:
        rule = f"must have at least {counted(least, 'different text')}. Found: {found}."
        raise ValueError(f"`{owner}`: {arguments.file} {rule}")
    return list(rows), texts, encode_texts(arguments, texts, owner=owner)


def encode_texts(arguments: argparse.Namespace, texts: list[str], *, owner: str) -> np.ndarray:
    """The vectors of texts by the model of a command's arguments, float32 `(texts, vector_dim)`.

    Raises:
        ValueError, OSError: the model cannot be read, or embeds no sentences; the size of a batch is none.
    """
    checks.positive_integer(owner, "--batch-size", arguments.batch_size)
    model = load_sentence_encoder(arguments.model, owner=owner).model
    return vectors_of(model, texts, arguments.batch_size, owner=owner)


def load_sentence_encoder(source: str, *, owner: str) -> LoadedModel:
    """The sentence encoder of a source, or one made of a BERT.

    Raises:
        ValueError, OSError: the model cannot be read, or embeds no sentences.
    """
    task = None if keras_file(source_of(source)) else _TASK
    loaded = load_task_of_texts(source, task, owner=owner, argument="--model")
    if loaded.task not in (_TASK, "BertStaticEncoder"):
        raise ValueError(checks.message(owner, "--model", "be a sentence encoder", checks.Shown(loaded.task)))
    return loaded


def vectors_of(encoder: Any, texts: list[str], batch_size: int, *, owner: str) -> np.ndarray:
    """The vectors of texts, float32 `(texts, vector_dim)`; a progress bar shows how far it is."""
    checks.positive_integer(owner, "--batch-size", batch_size)
    vectors = np.empty((len(texts), encoder.output.shape[-1]), np.float32)
    with progress("Encoding", len(texts), unit="rows") as advance:
        for index, vector in enumerate(encoder.predict_stream(texts, batch_size)):
            vectors[index] = vector
            advance(1)
    return vectors


def load_search_encoder(source: str, *, owner: str) -> Any:
    """Loads the encoder of texts of a source, except a sparse one; or makes one of sentences of a BERT without a head.

    Raises:
        CheckpointError, ValueError: the source cannot be read, has another task, or no tokenizer.
    """
    loaded = load_model(source, None, owner=owner)
    if loaded.task is None:
        loaded = load_task_of_texts(source, _TASK, owner=owner, argument="--model")
    if (
        loaded.task not in (_TASK, "dual_encoder", "multi_vector_encoder", "BertStaticEncoder")
        or loaded.preprocessor is None
    ):
        rule = "be an encoder of sentences, or of queries and documents, with a tokenizer and dense vectors"
        raise ValueError(checks.message(owner, "--model", rule, checks.Shown(loaded.task)))
    return loaded.model


def write_csv(path: Path | None, rows: Iterable[Sequence[Any]], *, owner: str) -> None:
    """Writes a CSV file, completely or not at all; to stdout if there is no path."""
    if path is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
        return
    content = io.StringIO(newline="")
    csv.writer(content, lineterminator="\n").writerows(rows)
    with atomic_write(path, owner=owner, argument="--to") as unfinished:
        unfinished.write_text(content.getvalue(), encoding="utf-8", newline="")
