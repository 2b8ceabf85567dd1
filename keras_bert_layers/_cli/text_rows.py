"""From words, lines and JSON to rows of text: what a model is asked."""

from __future__ import annotations

import io
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

OWNER = "predict"
JSON_SUFFIXES = (".jsonl", ".ndjson")
FORMATS = ("lines", "jsonl")
_FORMAT_CURE = "Separate columns by tabs, or give JSON lines with --format jsonl."


class TextRow(NamedTuple):
    """One thing that a model is asked.

    Args:
        place: where it comes from, for errors.
        texts: one value for each input of the model, in their order: a string, or a list of strings.
    """

    place: str
    texts: tuple[Any, ...]


def rows_of_words(words: Sequence[str], inputs: Mapping[str, int]) -> Iterator[TextRow]:
    """Rows of what was typed behind the command.

    Args:
        words: the arguments. One text makes a row; for a model of two texts, two in turn; for a model of several texts
            in a row, all of them: a prompt and its choices.
        inputs: input -> number of axes, 1 for a text in a row and 2 for several.

    Raises:
        ValueError: a text without its partner.

    Examples:
        >>> [row.texts for row in rows_of_words(["Who?", "Ann.", "Where?", "Rome."], {"question": 1, "context": 1})]
        [('Who?', 'Ann.'), ('Where?', 'Rome.')]
        >>> [row.texts for row in rows_of_words(["Ice", "melts", "burns"], {"prompt": 1, "choices": 2})]
        [('Ice', ['melts', 'burns'])]
    """
    if 2 in inputs.values():
        yield _row("the arguments", words, inputs)
        return
    if len(words) % len(inputs):
        raise ValueError(f"`{OWNER}`: TEXT must come as {' and '.join(inputs)} in turn. Received: {len(words)} texts.")
    for number, start in enumerate(range(0, len(words), len(inputs)), start=1):
        place = f"argument {number}" if len(inputs) == 1 else f"row {number} of the arguments"
        yield _row(place, words[start : start + len(inputs)], inputs)


def rows_of_file(path: Path | None, inputs: Mapping[str, int], *, form: str | None) -> Iterator[TextRow]:
    """Rows of a file, or of what comes in through stdin, one line each, as they come.

    Args:
        path: a UTF-8 file, plain or gzip; None for stdin.
        inputs: as for `rows_of_words`.
        form: `"lines"`, where a tab separates columns if the model has more than one input; `"jsonl"`, where a line is
            an object with the inputs' names; None for what the file's name says.

    Raises:
        ValueError: a line that is not a row; it is named.
        OSError: the file cannot be read.
    """
    from keras_bert_layers.data._text_file import numbered_lines

    name = "stdin" if path is None else str(path)
    is_json = form == "jsonl" or (form is None and Path(name.removesuffix(".gz")).suffix in JSON_SUFFIXES)
    lines = _stdin_lines() if path is None else numbered_lines(path)
    for number, line in lines:
        place = f"line {number} of {name}"
        yield _json_row(place, line, inputs) if is_json else _line_row(place, line, inputs)


def batches(rows: Iterable[TextRow], size: int) -> Iterator[list[TextRow]]:
    """Rows in lists of at most `size`, in their order."""
    rows = iter(rows)
    while batch := list(itertools.islice(rows, size)):
        yield batch


def columns_of(batch: Sequence[TextRow]) -> Any:
    """What `task.answer` and `task.predict` take: a column, or a tuple of them."""
    columns = tuple(list(column) for column in zip(*(row.texts for row in batch), strict=True))
    return columns[0] if len(columns) == 1 else columns


def _stdin_lines() -> Iterator[tuple[int, str]]:
    """Lines from stdin, without their ends, each as soon as it is there."""
    binary = getattr(sys.stdin, "buffer", None)
    if binary is not None:
        text: Any = io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape", newline="\n")
    else:
        text = sys.stdin
    try:
        for number, line in enumerate(iter(text.readline, ""), start=1):
            yield number, line.removesuffix("\n").removesuffix("\r")
    finally:
        if binary is not None:
            text.detach()


def _line_row(place: str, line: str, inputs: Mapping[str, int]) -> TextRow:
    return _row(place, [line] if len(inputs) == 1 else line.split("\t"), inputs)


def _json_row(place: str, line: str, inputs: Mapping[str, int]) -> TextRow:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"`{OWNER}`: {place} must be JSON: {error}.") from error
    if not isinstance(values, dict) or not inputs.keys() <= values.keys():
        raise ValueError(f"`{OWNER}`: {place} must be a JSON object with {', '.join(inputs)}. Received: {line[:60]!r}.")
    return _checked(place, tuple(values[name] for name in inputs), inputs)


def _row(place: str, columns: Sequence[str], inputs: Mapping[str, int]) -> TextRow:
    """A row of columns; where the last input takes several texts, the rest of the columns are these."""
    has_list = 2 in inputs.values()
    if len(columns) < len(inputs) or (not has_list and len(columns) > len(inputs)):
        needed = " and ".join(inputs)
        raise ValueError(f"`{OWNER}`: {place} must hold {needed}. Received: {len(columns)} column(s). {_FORMAT_CURE}")
    first = len(inputs) - 1
    texts = (*columns[:first], list(columns[first:])) if has_list else tuple(columns)
    return _checked(place, texts, inputs)


def _checked(place: str, texts: tuple[Any, ...], inputs: Mapping[str, int]) -> TextRow:
    """The row, if its values are strings that UTF-8 can hold, or lists of them where the model takes several."""
    from keras_bert_layers.data._text_file import not_utf8

    for (name, num_axes), value in zip(inputs.items(), texts, strict=True):
        strings = value if num_axes > 1 else [value]
        is_text = isinstance(strings, list) and all(isinstance(text, str) for text in strings)
        if not is_text or (num_axes > 1 and not any(strings)):
            rule = "a list of strings that are not all empty" if num_axes > 1 else "a string"
            raise ValueError(f"`{OWNER}`: {name} in {place} must be {rule}. Received: {value!r}.")
        if wrong := not_utf8(*strings):
            raise ValueError(f"`{OWNER}`: {place}: {wrong}")
    return TextRow(place, texts)
