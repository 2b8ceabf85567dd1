"""Reading training data from a user's file: tables, CoNLL, SQuAD, or a text per line."""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keras_bert_layers.cli.columns import column_value
from keras_bert_layers.cli.terminal import counted
from keras_bert_layers.cli.text_rows import (
    JSON_SUFFIXES,
    Inputs,
    TextRow,
    check_file,
    checked_row,
    rows_of_file,
    suffix_of,
    with_input_names,
)

OWNER = "train"
_MOST_LINES = 1000  # that are read to recognize a file; corpora begin with some lines of another kind at most
_LONGEST_CELL = 2**27  # of Python's reader, whose own limit is 131,072 characters

TABLES = (".csv", ".tsv", *JSON_SUFFIXES)

# A file name's end -> the task that it is for, unless `--task` selects another.
TASK_OF_SUFFIX = {
    **dict.fromkeys(TABLES, "classifier"),
    **dict.fromkeys((".conll", ".bio", ".iob"), "token_classifier"),
    ".json": "question_answerer",
    ".txt": "masked_lm",
}


class TrainingRows(NamedTuple):
    """Rows of a task as columns.

    Args:
        texts: the columns of `x` of `fit`: of texts, and then those beside them.
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
        """The first argument of `fit`."""
        return self.texts[0] if len(self.texts) == 1 else self.texts

    @property
    def y(self) -> Any:
        """The second argument of `fit`."""
        return self.labels if len(self.labels) > 1 else next(iter(self.labels), None)

    def split(self, share: float, seed: int) -> tuple[TrainingRows, TrainingRows]:
        """The rows to train on, and a share of them, at least one, drawn at random to validate on."""
        order = random.Random(seed).sample(range(self.num_rows), self.num_rows)
        num_held_out = max(1, round(share * self.num_rows))
        return self._at(order[num_held_out:]), self._at(order[:num_held_out])

    def with_values(self, names: Sequence[str], dtypes: Mapping[str, str], *, owner: str = OWNER) -> TrainingRows:
        """The rows with values in place of the cells of columns beside the texts, in the order of a model.

        Args:
            names: the columns, as they were read.
            dtypes: the dtypes of the same columns, in the order that the model has.
            owner: the command, for errors.

        Raises:
            ValueError: a cell is no number where the model reads numbers.
        """
        num_texts = len(self.texts) - len(names)
        cells = dict(zip(names, self.texts[num_texts:], strict=True))
        columns = (
            [column_value(cell, name, dtype, owner=owner) for cell in cells[name]] for name, dtype in dtypes.items()
        )
        return TrainingRows((*self.texts[:num_texts], *columns), self.labels)

    def _at(self, indices: Sequence[int]) -> TrainingRows:
        texts, labels = (tuple([column[index] for index in indices] for column in columns) for columns in self)
        return TrainingRows(texts, labels)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every command that reads rows with labels."""
    add = parser.add_argument
    add("--text", default="text", metavar="COLUMN", help="the column of texts (default: text)")
    add("--pair", metavar="COLUMN", help="the column of second texts, for pairs")
    add("--label", metavar="COLUMN", help="the column of labels")
    add("--separator", default=";", metavar="S", help="between several labels in a cell (default: ;)")


def task_of_file(path: Path) -> tuple[str, str]:
    """The task that a file is for, by its name or by its first lines, and the reason for people."""
    suffix = suffix_of(path.name)
    if suffix not in TASK_OF_SUFFIX:
        raise ValueError(
            f"`{OWNER}`: --task must be given for a file whose name ends in {suffix!r}. Names that need none end in "
            f"{', '.join(TASK_OF_SUFFIX)}."
        )
    task = TASK_OF_SUFFIX[suffix]
    if suffix == ".txt":
        before = suffix_of(path.name.removesuffix(".gz")[: -len(suffix)])
        if TASK_OF_SUFFIX.get(before) == "token_classifier":
            return "token_classifier", f"the file's name ends in {before}{suffix}"
        if _holds_tags(path):
            return "token_classifier", "the file's lines are words with tags"
    return task, f"the file's name ends in {suffix}"


def _holds_tags(path: Path) -> bool:
    """Whether all of a file's first lines, and at least two, are a word and a tag, as in CoNLL files."""
    from keras_bert_layers.data.conll_file import TAG
    from keras_bert_layers.data.text_file import numbered_lines

    check_file(path, owner=OWNER)
    lines = (line for _, line in itertools.islice(numbered_lines(path), _MOST_LINES))
    rows = [line.split() for line in lines if line.strip() and not line.startswith(("-DOCSTART-", "#"))]
    return len(rows) > 1 and all(len(row) > 1 and TAG.fullmatch(row[-1]) for row in rows)


def read_rows(
    path: Path, task: str, arguments: argparse.Namespace, *, columns: Sequence[str] = (), owner: str = OWNER
) -> TrainingRows:
    """The rows of a file.

    Args:
        path: the file.
        task: the task to train.
        arguments: those of the command: `text`, `pair`, `label`, `labels` and `separator`.
        columns: the columns of a table beside its texts, whose cells are read as they are; see `with_values`.
        owner: the command, for errors.

    Raises:
        ValueError, OSError: the file cannot be read, or lacks a column; a column is named twice.
    """
    from keras_bert_layers.data import read_conll, read_squad

    check_file(path, owner=owner)
    if task == "token_classifier":
        sentences = read_conll(path)
        return TrainingRows((sentences.words,), (sentences.tags,))
    if task == "question_answerer":
        data = read_squad(path)
        return TrainingRows((data.questions, data.contexts), (data.answer_starts, data.answers))
    if task == "masked_lm" and suffix_of(path.name) not in TABLES:
        return TrainingRows((_lines(path, owner),), ())
    return _table_rows(path, task, arguments, columns, owner)


def _table_rows(
    path: Path, task: str, arguments: argparse.Namespace, beside: Sequence[str], owner: str
) -> TrainingRows:
    pair, label = arguments.pair, arguments.label
    if task in ("cross_encoder", "sentence_encoder") and pair is None:
        raise ValueError(f"`{owner}`: --pair must name the column of second texts for --task {task}.")
    if task == "masked_lm":
        pair = label = None
    elif label is None and task != "sentence_encoder":
        found = ", ".join(map(str, next(table_rows(path, owner), (0, {}))[1]))
        rule = f"--label must name the column of labels for --task {task}"
        raise ValueError(f"`{owner}`: {rule}. The columns of {path} are: {found}.")
    names = [arguments.text, *filter(None, (pair, label))]
    if len({*names, *beside}) < len(names) + len(beside):
        rule = f"--columns must name columns beside {', '.join(names)}, each once"
        raise ValueError(f"`{owner}`: {rule}. Received: {', '.join(beside)}.")
    kind = arguments.labels if task == "classifier" else "number"
    columns = read_table(path, names, owner=owner, may_be_empty=label if kind == "several" else None)
    num_texts = len(names) - (label is not None)
    texts = tuple([str(cell) for cell in column] for column in columns[:num_texts])
    table = [row for _, row in table_rows(path, owner)] if beside else []
    texts += tuple([_named(row, name, path, owner) for row in table] for name in beside)
    if label is None:
        return TrainingRows(texts, ())
    labels = [_label(cell, kind, arguments.separator) for cell in columns[-1]]
    if None in labels:
        cell = columns[-1][labels.index(None)]
        raise ValueError(f"`{owner}`: every label of {path} must be a number. Received: {cell!r}.")
    return TrainingRows(texts, (labels,))


def _label(cell: Any, kind: str, separator: str) -> Any:
    """The label in a cell; None where it is not a number and must be."""
    if kind == "one":
        return str(cell).strip()
    if kind == "several":
        names = cell if isinstance(cell, list) else str(cell).split(separator)
        return [str(name).strip() for name in names if str(name).strip()]
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _lines(path: Path, owner: str) -> list[str]:
    rows = rows_of_file(path, {"text": 1}, form="lines", owner=owner)
    found = [line for row in rows if (line := row.texts[0].strip())]
    if not found:
        raise ValueError(f"`{owner}`: {path} must hold at least one line.")
    return found


def read_table(
    path: Path, names: Sequence[str], *, owner: str = OWNER, may_be_empty: str | None = None
) -> list[list[Any]]:
    """The columns with these names.

    Args:
        path: a UTF-8 file, plain or gzip: `.csv` (separated by commas, or by semicolons where its first line has no
            comma, as spreadsheets write it in some countries), `.tsv` (by tabs; without quoting where its quotation
            marks are a part of the text), or `.jsonl` with an object on each line.
        names: the columns to read.
        owner: the command, for errors.
        may_be_empty: the name of a column whose cells may be empty.

    Returns:
        One list per column. Cells of a CSV or TSV file are strings, those of JSON lines are JSON values.

    Raises:
        ValueError: there is no such column, a row lacks a cell, or the file has no row.
        OSError: the file cannot be read.
    """
    rows = list(table_cells(path, names, owner=owner, may_be_empty=may_be_empty))
    if names and not rows:
        raise ValueError(f"`{owner}`: {path} must have at least one row.")
    return [list(column) for column in zip(*rows, strict=True)]


def table_cells(
    path: Path, names: Sequence[str], *, owner: str, may_be_empty: str | None = None
) -> Iterator[list[Any]]:
    """The cells of `read_table` row by row; arguments and errors as there."""
    return cells_of(table_rows(path, owner), path, names, owner=owner, may_be_empty=may_be_empty)


def cells_of(
    rows: Iterable[tuple[int, dict[str, Any]]],
    path: Path,
    names: Sequence[str],
    *,
    owner: str,
    may_be_empty: str | None = None,
) -> Iterator[list[Any]]:
    """The cells of rows that `table_rows` has read; arguments and errors as in `read_table`."""
    for line, row in rows:
        for name in names:
            cell = _named(row, name, path, owner)
            if cell is None or (name != may_be_empty and not str(cell).strip()):
                raise ValueError(f"`{owner}`: {path}, line {line}: column {name!r} is empty. Fill or remove the row.")
        yield [row[name] for name in names]


def _named(row: Mapping[str, Any], name: str, path: Path, owner: str) -> Any:
    """The cell of a column; ValueError if the row has none."""
    if name not in row:
        found = ", ".join(str(key) for key in row if key is not None)
        raise ValueError(f"`{owner}`: {path} must have a column {name!r}. The columns are: {found}.")
    return row[name]


def rows_of_table(path: Path, inputs: Inputs, columns: Mapping[str, str | None], *, owner: str) -> Iterator[TextRow]:
    """The rows of a table for a model, as of `text_rows.rows_of_file`.

    Args:
        path: as in `read_table`.
        inputs: those of the model.
        columns: the column for an input, if its name is another one.
        owner: the command, for errors.

    Raises:
        ValueError: there is no such column, or a cell is of another kind.
        OSError: the file cannot be read.
    """
    for line, row in table_rows(path, owner):
        known, names = with_input_names(row, inputs), [columns.get(name) or name for name in inputs]
        values = [known[name] if name in known else _named(row, name, path, owner) for name in names]
        yield checked_row(f"line {line} of {path}", values, inputs, owner)


def table_rows(path: Path, owner: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a table with their lines, as dictionaries."""
    return (_json_rows if suffix_of(path.name) in JSON_SUFFIXES else _csv_rows)(path, owner)


def csv_format(path: Path) -> tuple[str, Literal[0, 3]]:
    """What separates the cells of a CSV or TSV file, and its rule of quoting, as of Python's reader."""
    from keras_bert_layers.data.text_file import open_text

    if suffix_of(path.name) == ".tsv":
        return "\t", csv.QUOTE_MINIMAL if _is_quoted(path) else csv.QUOTE_NONE
    with open_text(path) as file:
        header = file.readline()
    return ";" if ";" in header and "," not in header else ",", csv.QUOTE_MINIMAL


def _csv_rows(path: Path, owner: str) -> Iterator[tuple[int, dict[str, Any]]]:
    from keras_bert_layers.data.text_file import RowError, check_utf8, open_text

    csv.field_size_limit(_LONGEST_CELL)
    delimiter, quoting = csv_format(path)
    with open_text(path) as file:
        reader = csv.DictReader(file, delimiter=delimiter, quoting=quoting, strict=True)
        try:
            for row in reader:
                if None in row:
                    more = counted(len(row[None]), "cell")
                    raise RowError(f"{more} more than columns. Quote cells that contain the separator {delimiter!r}.")
                check_utf8("".join(cell for cell in row.values() if cell))
                yield reader.line_num, row
        except RowError as error:
            raise ValueError(f"`{owner}`: {path}, line {reader.line_num}: {error}") from error
        except csv.Error as error:
            cure = "A cell that begins with a quotation mark must end with one; write marks inside it twice."
            first = reader.line_num + 1  # of the row, which may have taken in all lines after it
            raise ValueError(f"`{owner}`: {path}, line {first}: {error}. {cure}") from error


def _is_quoted(path: Path) -> bool:
    """Whether the quotation marks of a table with tabs enclose cells, and are not a part of the text.

    They are a part of it if a cell that begins with one does not end with one, or if a cell would hold line feeds
    though each line of the file is a whole row as it stands.
    """
    from keras_bert_layers.data.text_file import open_text

    with open_text(path) as file:
        try:
            num_rows = sum(1 for row in csv.reader(file, delimiter="\t", strict=True) if row)
        except csv.Error:
            return False
    with open_text(path) as file:
        widths = [len(row) for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row]
    return len(widths) == num_rows or len(set(widths)) > 1


def _json_rows(path: Path, owner: str) -> Iterator[tuple[int, dict[str, Any]]]:
    from keras_bert_layers.data.text_file import check_utf8, numbered_lines

    for line, text in numbered_lines(path):
        try:
            check_utf8(text)
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"`{owner}`: {path}, line {line} must be JSON: {error}") from error
        if not isinstance(row, dict):
            raise ValueError(f"`{owner}`: {path}, line {line} must be a JSON object. Received: {text[:60]!r}.")
        yield line, row
