"""`TrainingRows`: what a task is trained on, read from a user's file."""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_layers.cli.table import read_table
from keras_bert_layers.cli.text_rows import JSON_SUFFIXES, suffix_of

TABLES = (".csv", ".tsv", *JSON_SUFFIXES)
# A file name's end -> the task that it is for, unless `--task` says another.
TASK_OF_SUFFIX = {
    **dict.fromkeys(TABLES, "classifier"),
    **dict.fromkeys((".conll", ".bio", ".iob"), "token_classifier"),
    ".json": "question_answerer",
    ".txt": "masked_lm",
}


class TrainingRows(NamedTuple):
    """Rows of a task as columns.

    Args:
        texts: the columns of `x` of `fit`.
        labels: the columns of `y` of `fit`; none for a task that makes its own labels.
    """

    texts: tuple[list[Any], ...]
    labels: tuple[list[Any], ...]

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.texts[0])

    @property
    def x(self) -> Any:
        """What `fit` takes first."""
        return self.texts[0] if len(self.texts) == 1 else self.texts

    @property
    def y(self) -> Any:
        """What `fit` takes second."""
        return self.labels if len(self.labels) > 1 else next(iter(self.labels), None)

    def split(self, share: float, seed: int) -> tuple[TrainingRows, TrainingRows]:
        """The rows to train on, and a share of them, at least one, drawn at random to validate on."""
        order = random.Random(seed).sample(range(self.num_rows), self.num_rows)
        num_held_out = max(1, round(share * self.num_rows))
        return self._at(order[num_held_out:]), self._at(order[:num_held_out])

    def _at(self, indices: Sequence[int]) -> TrainingRows:
        texts, labels = (tuple([column[index] for index in indices] for column in columns) for columns in self)
        return TrainingRows(texts, labels)


def task_of_file(path: Path, *, owner: str) -> str:
    """The task that a file is for by its name."""
    suffix = suffix_of(path.name)
    if suffix not in TASK_OF_SUFFIX:
        raise ValueError(
            f"`{owner}`: --task must be given for a file whose name ends in {suffix!r}. Names that need none end in "
            f"{', '.join(TASK_OF_SUFFIX)}."
        )
    return TASK_OF_SUFFIX[suffix]


def read_rows(path: Path, task: str, arguments: argparse.Namespace, *, owner: str) -> TrainingRows:
    """The rows of a file.

    Args:
        path: the file.
        task: the task to train.
        arguments: those of the command: `text`, `pair`, `label`, `labels` and `separator`.
        owner: the command, for errors.

    Raises:
        ValueError, OSError: the file cannot be read, or lacks a column.
    """
    from keras_bert_layers.data import read_conll, read_squad

    if not path.is_file():
        raise FileNotFoundError(f"`{owner}`: no such file: {path}.")
    if task == "token_classifier":
        sentences = read_conll(path)
        return TrainingRows((sentences.words,), (sentences.tags,))
    if task == "question_answerer":
        data = read_squad(path)
        return TrainingRows((data.questions, data.contexts), (data.answer_starts, data.answers))
    if task == "masked_lm" and suffix_of(path.name) not in TABLES:
        return TrainingRows((_lines(path, owner),), ())
    return _table_rows(path, task, arguments, owner)


def _table_rows(path: Path, task: str, arguments: argparse.Namespace, owner: str) -> TrainingRows:
    pair, label = arguments.pair, arguments.label
    if task in ("cross_encoder", "sentence_encoder") and pair is None:
        raise ValueError(f"`{owner}`: --pair must name the column of second texts for --task {task}.")
    if task == "masked_lm":
        pair = label = None
    elif label is None and task != "sentence_encoder":
        raise ValueError(f"`{owner}`: --label must name the column of labels for --task {task}.")
    names = [arguments.text, *filter(None, (pair, label))]
    columns = read_table(path, names, owner=owner)
    num_texts = len(names) - (label is not None)
    texts = tuple([str(cell) for cell in column] for column in columns[:num_texts])
    if label is None:
        return TrainingRows(texts, ())
    kind = arguments.labels if task == "classifier" else "number"
    return TrainingRows(texts, ([_label(cell, kind, path, arguments.separator, owner) for cell in columns[-1]],))


def _label(cell: Any, kind: str, path: Path, separator: str, owner: str) -> Any:
    if kind == "one":
        return str(cell)
    if kind == "several":
        names = cell if isinstance(cell, list) else str(cell).split(separator)
        return [str(name).strip() for name in names if str(name).strip()]
    try:
        return float(cell)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{owner}`: every label of {path} must be a number. Received: {cell!r}.") from error


def _lines(path: Path, owner: str) -> list[str]:
    from keras_bert_layers.data._row_collector import RowError
    from keras_bert_layers.data._text_file import check_utf8, numbered_lines

    found = []
    for number, line in numbered_lines(path):
        try:
            check_utf8(line)
        except RowError as error:
            raise ValueError(f"`{owner}`: {path}, line {number}: {error}") from error
        if line.strip():
            found.append(line.strip())
    if not found:
        raise ValueError(f"`{owner}`: {path} must hold at least one line.")
    return found
