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

JSON_SUFFIXES = (".jsonl", ".ndjson")
_FORMAT_CURE = "Separate columns by tabs, or give JSON lines with --format jsonl."


class TextRow(NamedTuple):
    """The inputs of a model for one answer.

    Args:
        position: where the row comes from, for errors.
        texts: one value for each input of the model, in their order: a string, or a list of strings.
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


def rows_of_words(words: Sequence[str], inputs: Mapping[str, int], *, owner: str) -> Iterator[TextRow]:
    """Rows of the arguments of a command.

    Args:
        words: the arguments. One text makes a row; for a model of two texts, two in turn; for a model with a list of
            texts per row, all of them: a prompt and its choices.
        inputs: input -> number of axes, 1 for one text per row and 2 for several.
        owner: the command, for errors.

    Raises:
        ValueError: a text lacks its partner.

    Examples:
        >>> words = ["Who?", "Ann.", "Where?", "Rome."]
        >>> [row.texts for row in rows_of_words(words, {"question": 1, "context": 1}, owner="predict")]
        [('Who?', 'Ann.'), ('Where?', 'Rome.')]
        >>> words = ["Ice", "melts", "burns"]
        >>> [row.texts for row in rows_of_words(words, {"prompt": 1, "choices": 2}, owner="predict")]
        [('Ice', ['melts', 'burns'])]
    """
    if 2 in inputs.values():
        yield _row("the arguments", words, inputs, owner)
        return
    if len(words) % len(inputs):
        raise ValueError(f"`{owner}`: TEXT must come as {' and '.join(inputs)} in turn. Received: {len(words)} texts.")
    for number, start in enumerate(range(0, len(words), len(inputs)), start=1):
        position = f"argument {number}" if len(inputs) == 1 else f"row {number} of the arguments"
        yield _row(position, words[start : start + len(inputs)], inputs, owner)


def rows_of_file(path: Path | None, inputs: Mapping[str, int], *, form: str | None, owner: str) -> Iterator[TextRow]:
    """Rows of a file or of stdin, one per line, each as soon as its line has been read.

    Args:
        path: a UTF-8 file, plain or gzip; None for stdin.
        inputs: as for `rows_of_words`.
        form: `"lines"`, where tabs separate the columns of a model with more than one input; `"jsonl"`, where each line
            is an object with the inputs' names; None to decide by the file's name.
        owner: the command, for errors.

    Raises:
        ValueError: a line is not a row; the message names it.
        OSError: the file cannot be read.
    """
    from keras_bert_layers.data.text_file import numbered_lines

    name = "stdin" if path is None else str(path)
    is_json = form == "jsonl" or (form is None and suffix_of(name) in JSON_SUFFIXES)
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


def _stdin_lines() -> Iterator[tuple[int, str]]:
    """Lines of stdin, numbered, without their ends."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape", newline="\n")
    for number, line in enumerate(sys.stdin, start=1):
        yield number, line.removesuffix("\n").removesuffix("\r")


def _json_row(position: str, line: str, inputs: Mapping[str, int], owner: str) -> TextRow:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"`{owner}`: {position} must be JSON: {error}.") from error
    if not isinstance(values, dict) or not inputs.keys() <= values.keys():
        rule = f"must be a JSON object with {', '.join(inputs)}"
        raise ValueError(f"`{owner}`: {position} {rule}. Received: {line[:60]!r}.")
    return _checked(position, [values[name] for name in inputs], inputs, owner)


def _row(position: str, columns: Sequence[str], inputs: Mapping[str, int], owner: str) -> TextRow:
    """A row of columns; if the last input takes several texts, it gets all columns that are left."""
    has_list = 2 in inputs.values()
    if len(columns) < len(inputs) or (not has_list and len(columns) > len(inputs)):
        needed = " and ".join(inputs)
        raise ValueError(
            f"`{owner}`: {position} must hold {needed}. Received: {len(columns)} column(s). {_FORMAT_CURE}"
        )
    last = len(inputs) - 1
    return _checked(position, [*columns[:last], list(columns[last:])] if has_list else columns, inputs, owner)


def _checked(position: str, texts: Sequence[Any], inputs: Mapping[str, int], owner: str) -> TextRow:
    """The row, if its values are strings that UTF-8 can encode, or lists of such strings where the model takes them."""
    from keras_bert_layers.data.text_file import check_utf8

    for (name, num_axes), value in zip(inputs.items(), texts, strict=True):
        strings = value if num_axes > 1 else [value]
        is_text = isinstance(strings, list) and all(isinstance(text, str) for text in strings)
        if not is_text or (num_axes > 1 and not any(strings)):
            rule = "a list of strings that are not all empty" if num_axes > 1 else "a string"
            raise ValueError(f"`{owner}`: {name} in {position} must be {rule}. Received: {value!r}.")
        try:
            check_utf8("".join(strings))
        except ValueError as error:
            raise ValueError(f"`{owner}`: {position}: {error}") from error
    return TextRow(position, tuple(texts))
