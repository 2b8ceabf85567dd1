"""Lines that cannot be used: where they are, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_layers.data._text_file import open_bytes
from keras_bert_layers.data.pretraining._plan import PARQUET, form_of

CHUNK_BYTES = 1 << 20


class BadLine(NamedTuple):
    """A line, or a row of a Parquet file, that cannot be used.

    Args:
        path: the file.
        place: the position of the line's first byte in the text; of a Parquet file, the number of the row.
        reason: what is wrong, and the cure.
    """

    path: str
    place: int
    reason: str


def messages(lines: Iterable[BadLine]) -> list[str]:
    """One message a line, with the file and the number of the line, in the order of the files' names and of the lines.

    Whoever reads a part of a file does not know the numbers of its lines, so they are counted here: once a file.
    """
    of_file: dict[str, list[BadLine]] = defaultdict(list)
    for line in lines:
        of_file[line.path].append(line)
    return [message for path in sorted(of_file) for message in _of_file(Path(path), sorted(of_file[path]))]


def _of_file(path: Path, lines: list[BadLine]) -> Iterator[str]:
    if form_of(path) == PARQUET:
        yield from (f"{path}, row {line.place}: {line.reason}" for line in lines)
        return
    with open_bytes(path) as file:
        number, at = 1, 0
        for line in lines:
            number, at = number + _line_ends(file, line.place - at), line.place
            yield f"{path}, line {number}: {line.reason}"


def _line_ends(file: Any, num_bytes: int) -> int:
    """The number of line ends in the next bytes."""
    found = 0
    while num_bytes > 0 and (chunk := file.read(min(num_bytes, CHUNK_BYTES))):
        found += chunk.count(b"\n")
        num_bytes -= len(chunk)
    return found
