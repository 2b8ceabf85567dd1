"""Reads documents from files of text, JSON lines and Parquet, or from pieces of them that need no other piece."""

import glob
import json
import math
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Strings
from keras_bert_layers.data.text_file import GZIP_MAGIC, RowError, check_utf8, open_bytes

TEXT, JSON, PARQUET = "text", "json", "parquet"
FORMS = {".txt": TEXT, ".jsonl": JSON, ".ndjson": JSON, ".parquet": PARQUET}
LINES, BLANK_LINES = "lines", "blank_lines"
CHUNK_BYTES = 1 << 16
# Rows of a Parquet file that are decoded at once; documents may be long.
ROWS_AT_ONCE = 256


def form_of(path: Path) -> str:
    """What a file holds, by its name: `TEXT`, `JSON` or `PARQUET`; "" for any other."""
    return FORMS.get(Path(path.name.lower().removesuffix(".gz")).suffix, "")


def paths_of(owner: str, files: Any) -> list[Path]:
    """The files of a path, a pattern, or a list of them; those of a pattern in the order of their names.

    Raises:
        TypeError: not paths.
        FileNotFoundError: no such file.
        ValueError: a name that does not show the form, or no file.
    """
    given = [files] if isinstance(files, str | PathLike) else files
    if not isinstance(given, Sequence) or not all(isinstance(file, str | PathLike) for file in given):
        raise TypeError(checks.message(owner, "files", "be a path, a pattern such as *.txt, or a list of them", files))
    paths = [Path(name) for file in given for name in _matches(str(file))]
    if not paths:
        raise ValueError(checks.message(owner, "files", "hold at least one file", files))
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"`{owner}`: no such file: {path}.")
        if not form_of(path):
            cure = "The name decides how a file is read: rename it."
            rule = f"have names that end in {', '.join(FORMS)}, or in .gz after one of them"
            raise ValueError(checks.message(owner, "files", rule, str(path), cure))
    return paths


def _matches(name: str) -> list[str]:
    if Path(name).exists() or not glob.has_magic(name):
        return [name]
    found = sorted(glob.glob(name, recursive=True))
    if not found:
        raise FileNotFoundError(f"no file matches {name}.")
    return found


class Piece(NamedTuple):
    """Part of a file.

    Args:
        path: the file.
        start: its documents are those whose first byte is here or later.
        stop: and before this; None for the end of the file.
    """

    path: Path
    start: int
    stop: int | None


def units_of(paths: Sequence[Path], block_bytes: int) -> list[tuple[Piece, ...]]:
    """Units of about `block_bytes` bytes: small files together, and large ones in equal parts, where they can be split.

    A compressed file is read from its start, so a large gzip or Parquet file is one unit.
    """
    units: list[tuple[Piece, ...]] = []
    small: list[Piece] = []
    room = block_bytes
    for path in paths:
        num_bytes = path.stat().st_size
        if small and num_bytes > room:
            units.append(tuple(small))
            small, room = [], block_bytes
        if num_bytes > block_bytes and _can_be_split(path):
            num_parts = math.ceil(num_bytes / block_bytes)
            bounds = [num_bytes * part // num_parts for part in range(num_parts + 1)]
            units += [(Piece(path, bounds[part], bounds[part + 1]),) for part in range(num_parts)]
        else:
            small.append(Piece(path, 0, None))
            room -= num_bytes
    return [*units, tuple(small)] if small else units


def _can_be_split(path: Path) -> bool:
    with path.open("rb") as file:
        return form_of(path) != PARQUET and file.read(len(GZIP_MAGIC)) != GZIP_MAGIC


class Found(NamedTuple):
    """What a file holds where a document is expected.

    Args:
        place: as in `BadLine`.
        num_bytes: its size in the file.
        lines: the lines of the document, without blank ones.
        problem: why it cannot be used; None for a document.
    """

    place: int
    num_bytes: int
    lines: list[str]
    problem: RowError | None = None


class _Line(NamedTuple):
    at: int
    num_bytes: int
    text: str


def documents_of(piece: Piece, *, separated_by: str | None, text_field: str) -> Iterator[Found]:
    """The documents whose first byte is in a piece of a file; arguments as for `DocumentFiles`."""
    form = form_of(piece.path)
    if form == PARQUET:
        yield from _parquet_documents(piece.path, text_field)
        return
    blank_lines = form == TEXT and separated_by == BLANK_LINES
    with open_bytes(piece.path) as file:
        lines = _lines(file, _first_line(file, piece, blank_lines=blank_lines) if piece.start else 0)
        for group in _groups(lines, piece.stop, blank_lines=blank_lines):
            yield _json_document(group[0], text_field) if form == JSON else _text_document(group)


def _first_line(file: Any, piece: Piece, *, blank_lines: bool) -> int:
    """Moves to the first line that does not belong to a document of the piece before, and returns its position."""
    at = _line_start(file, piece.start - 1) if blank_lines else piece.start - 1
    file.seek(at)
    line = file.readline()
    while blank_lines and _stripped(line, at) and at < (piece.stop or 0):
        at += len(line)
        line = file.readline()
    return at + len(line)


def _line_start(file: Any, position: int) -> int:
    """The position of the first byte of the line with the byte at `position`."""
    stop = position
    while stop > 0:
        start = max(0, stop - CHUNK_BYTES)
        file.seek(start)
        found = file.read(stop - start).rfind(b"\n")
        if found >= 0:
            return int(start + found + 1)
        stop = start
    return 0


def _lines(file: Any, at: int) -> Iterator[_Line]:
    """Lines without the white space at their ends; a byte that is not UTF-8 becomes a lone surrogate."""
    for line in file:
        yield _Line(at, len(line), _stripped(line, at))
        at += len(line)


def _stripped(line: bytes, at: int) -> str:
    text = line.decode("utf-8", "surrogateescape")
    return (text.removeprefix("\ufeff") if at == 0 else text).strip()


def _groups(lines: Iterator[_Line], stop: int | None, *, blank_lines: bool) -> Iterator[list[_Line]]:
    """The lines of each document: those between blank lines, or each line that is not blank."""
    group: list[_Line] = []
    for line in lines:
        if line.text:
            if not group and stop is not None and line.at >= stop:
                return
            group.append(line)
        if group and not (blank_lines and line.text):
            yield group
            group = []
    if group:
        yield group


def _text_document(lines: list[_Line]) -> Found:
    num_bytes = sum(line.num_bytes for line in lines)
    for line in lines:
        try:
            check_utf8(line.text)
        except RowError as error:
            return Found(line.at, num_bytes, [], error)
    return Found(lines[0].at, num_bytes, [line.text for line in lines])


def _json_document(line: _Line, field: str) -> Found:
    try:
        check_utf8(line.text)
        try:
            record = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            raise RowError(f"the line is not JSON ({error}). Write one object per line.") from error
        if not isinstance(record, dict) or field not in record:
            raise RowError(f"the line is not an object with {field!r}. `text_field` names the field of the text.")
        return Found(line.at, line.num_bytes, _checked_lines(record[field], field))
    except RowError as error:
        return Found(line.at, line.num_bytes, [], error)


def _parquet_documents(path: Path, field: str) -> Iterator[Found]:
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        cure = "Install it with `pip install keras-bert-layers[parquet]`."
        raise ModuleNotFoundError(f"{path}: reading Parquet needs pyarrow. {cure}", name="pyarrow") from error

    row = 0
    with parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if field not in names:
            raise ValueError(f"{path}: there is no column {field!r}. The columns are {names}. Pass `text_field`.")
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=[field], use_threads=False):
            for value in batch.column(0):
                row += 1
                yield _parquet_document(row, value, field)


def _parquet_document(row: int, value: Any, field: str) -> Found:
    try:
        try:
            text = value.as_py()
        except UnicodeDecodeError as error:
            raise RowError(f"{field!r} is not UTF-8 ({error}).") from error
        lines = _checked_lines(text, field)
        return Found(row, len(text.encode()), lines)
    except RowError as error:
        return Found(row, 0, [], error)


def _checked_lines(text: Strings, field: str) -> list[str]:
    """The lines of a document that are not blank."""
    if not isinstance(text, str):
        raise RowError(f"{field!r} must be a string. Received: {text!r:.60}.")
    check_utf8(text)
    return [line for part in text.split("\n") if (line := part.strip())]
