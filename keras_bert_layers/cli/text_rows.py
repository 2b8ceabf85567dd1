"""Reading rows of text from arguments, lines and JSON lines."""

import argparse
import io
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers.cli.columns import column_value
from keras_bert_layers.export.signature import input_name

#: The inputs of a model by name: 1 for one text per row, 2 for several; of a column beside the text, its dtype.
Inputs = Mapping[str, int | str]

JSON_SUFFIXES = (".jsonl", ".ndjson")
_FORMAT_CURE = "Separate columns by tabs, or give JSON lines with --format jsonl."


class TextRow(NamedTuple):
    """The inputs of a model for one answer.

    Args:
        position: where the row comes from, for errors.
        texts: one value for each input of the model, in their order: a string, a list of strings, or a column's value.
    """

    position: str
    texts: tuple[Any, ...]


def suffix_of(name: str) -> str:
    """The end of a file's name, in small letters and without `.gz`.

    Examples:
        >>> suffix_of("reviews.CSV.gz")
        '.csv'
    """
    return Path(name.removesuffix(".gz")).suffix.lower()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every command that reads rows."""
    formats = ("lines", "jsonl")
    shown = "the format of a line (default: by the file's name, or lines)"
    parser.add_argument("--format", choices=formats, help=shown)
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="rows per step (default: 32)")


def check_arguments(owner: str, arguments: argparse.Namespace, file: Path | None) -> None:
    """Raises a ValueError for a batch size below 1, and a FileNotFoundError if the file of rows does not exist."""
    checks.positive_integer(owner, "--batch-size", arguments.batch_size)
    if file is not None:
        check_file(file, owner=owner)


def check_file(path: Path, *, owner: str) -> None:
    """Raises a FileNotFoundError if there is no such file."""
    if not path.is_file():
        raise FileNotFoundError(f"`{owner}`: no such file: {path}.")


def rows_of_words(words: Sequence[str], inputs: Inputs, *, owner: str) -> Iterator[TextRow]:
    """Rows of the arguments of a command.

    Args:
        words: the arguments. One text makes a row; for a model of two texts, two in turn; for a model with a list of
            texts per row, all of them: a prompt and its choices.
        inputs: those of the model.
        owner: the command, for errors.

    Raises:
        ValueError: a text lacks its partner; the model reads columns, too.

    Examples:
        >>> words = ["Who?", "Ann.", "Where?", "Rome."]
        >>> [row.texts for row in rows_of_words(words, {"question": 1, "context": 1}, owner="predict")]
        [('Who?', 'Ann.'), ('Where?', 'Rome.')]
        >>> words = ["Ice", "melts", "burns"]
        >>> [row.texts for row in rows_of_words(words, {"prompt": 1, "choices": 2}, owner="predict")]
        [('Ice', ['melts', 'burns'])]
    """
    _refuse_columns(inputs, owner)
    if 2 in inputs.values():
        yield _row("the arguments", words, inputs, owner)
        return
    if len(words) % len(inputs):
        raise ValueError(f"`{owner}`: TEXT must come as {' and '.join(inputs)} in turn. Received: {len(words)} texts.")
    for number, start in enumerate(range(0, len(words), len(inputs)), start=1):
        position = f"argument {number}" if len(inputs) == 1 else f"row {number} of the arguments"
        yield _row(position, words[start : start + len(inputs)], inputs, owner)


def rows_of_file(path: Path | None, inputs: Inputs, *, form: str | None, owner: str) -> Iterator[TextRow]:
    """Rows of a file or of stdin, one per line, each as soon as its line has been read.

    Args:
        path: a UTF-8 file, plain or gzip; None for stdin.
        inputs: as for `rows_of_words`.
        form: `"lines"`, where tabs separate the columns of a model with more than one input; `"jsonl"`, where each line
            is an object with the inputs' names; None to decide by the file's name.
        owner: the command, for errors.

    Raises:
        ValueError: a line is not a row; the message names it. Or plain lines for a model that reads columns, too.
        OSError: the file cannot be read.
    """
    from keras_bert_layers.data.text_file import numbered_lines

    name = "stdin" if path is None else str(path)
    is_json = form == "jsonl" or (form is None and suffix_of(name) in JSON_SUFFIXES)
    if not is_json:
        _refuse_columns(inputs, owner)
    for number, line in _stdin_lines() if path is None else numbered_lines(path):
        position = f"line {number} of {name}"
        if is_json:
            yield _json_row(position, line, inputs, owner)
        else:
            yield _row(position, [line] if len(inputs) == 1 else line.split("\t"), inputs, owner)


def batches(rows: Iterable[TextRow], size: int) -> Iterator[list[TextRow]]:
    """Rows in lists of at most `size`, in their order."""
    rows = iter(rows)
    while batch := list(itertools.islice(rows, size)):
        yield batch


def columns_of(batch: Sequence[TextRow]) -> Any:
    """A batch as `task.answer` and `task.predict` take it: a column, or a tuple of columns."""
    columns = tuple(list(column) for column in zip(*(row.texts for row in batch), strict=True))
    return columns[0] if len(columns) == 1 else columns


def _refuse_columns(inputs: Inputs, owner: str) -> None:
    if found := [name for name, kind in inputs.items() if isinstance(kind, str)]:
        cure = "Give --file a table (.csv, .tsv, .jsonl) that has them, or JSON lines with --format jsonl."
        rule = f"the model reads the columns {', '.join(found)} beside a text, which plain texts do not have"
        raise ValueError(f"`{owner}`: {rule}. {cure}")


def _stdin_lines() -> Iterator[tuple[int, str]]:
    """Lines of stdin, numbered, without their ends."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape", newline="\n")
    for number, line in enumerate(sys.stdin, start=1):
        yield number, line.removesuffix("\n").removesuffix("\r")


def _json_row(position: str, line: str, inputs: Inputs, owner: str) -> TextRow:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"`{owner}`: {position} must be JSON: {error}.") from error
    known = with_input_names(values, inputs) if isinstance(values, dict) else {}
    if not inputs.keys() <= known.keys():
        rule = f"must be a JSON object with {', '.join(inputs)}"
        raise ValueError(f"`{owner}`: {position} {rule}. Received: {line[:60]!r}.")
    return checked_row(position, [known[name] for name in inputs], inputs, owner)


def with_input_names(row: Mapping[str, Any], inputs: Inputs) -> dict[str, Any]:
    """A row of a table, whose columns also have the names that the inputs for them have, as of an exported model."""
    columns = {input_name(name): name for name, kind in inputs.items() if isinstance(kind, str)}
    return {**{columns[key]: row[name] for name in row if (key := input_name(name)) in columns}, **row}


def _row(position: str, columns: Sequence[str], inputs: Inputs, owner: str) -> TextRow:
    """A row of columns; if the last input takes several texts, it gets all columns that are left."""
    has_list = 2 in inputs.values()
    if len(columns) < len(inputs) or (not has_list and len(columns) > len(inputs)):
        needed = " and ".join(inputs)
        raise ValueError(
            f"`{owner}`: {position} must hold {needed}. Received: {len(columns)} column(s). {_FORMAT_CURE}"
        )
    last = len(inputs) - 1
    return checked_row(position, [*columns[:last], list(columns[last:])] if has_list else columns, inputs, owner)


def checked_row(position: str, values: Sequence[Any], inputs: Inputs, owner: str) -> TextRow:
    """The row, if its texts are strings that UTF-8 can encode, or lists of such strings where the model takes them."""
    from keras_bert_layers.data.text_file import check_utf8

    row = list(values)
    for index, (name, kind) in enumerate(inputs.items()):
        value = row[index]
        if isinstance(kind, str):
            row[index] = column_value(value, name, kind, f" in {position}", owner=owner)
            continue
        strings = value if kind > 1 else [value]
        is_text = isinstance(strings, list) and all(isinstance(text, str) for text in strings)
        if not is_text or (kind > 1 and not any(strings)):
            rule = "a list of strings that are not all empty" if kind > 1 else "a string"
            raise ValueError(f"`{owner}`: {name} in {position} must be {rule}. Received: {value!r}.")
        try:
            check_utf8("".join(strings))
        except ValueError as error:
            raise ValueError(f"`{owner}`: {position}: {error}") from error
    return TextRow(position, tuple(row))
