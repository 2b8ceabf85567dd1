"""Reads text files by line, plain or gzip, and collects rows into columns; bad rows are errors or skipped."""

import contextlib
import gzip
import io
import itertools
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.data.columns import Columns

GZIP_MAGIC = b"\x1f\x8b"
BUFFER_BYTES = 1 << 16
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@contextlib.contextmanager
def open_bytes(path: Path) -> Iterator[Any]:
    """Opens a file for its bytes, and decompresses gzip; its first bytes decide.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the gzip data are damaged or incomplete, or the file is UTF-16.
    """
    with path.open("rb") as raw:
        start = raw.peek(2)[:2]
        if start in UTF_16_MARKS:
            raise ValueError(f"{path}: the file is UTF-16. Save it as UTF-8.")
        unzipped: Any = gzip.GzipFile(fileobj=raw)
        try:
            # The buffer makes short lines several times faster to read.
            yield io.BufferedReader(unzipped, BUFFER_BYTES) if start == GZIP_MAGIC else raw
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: the gzip data are damaged ({error}). Get the file again.") from error


@contextlib.contextmanager
def open_text(path: Path) -> Iterator[io.TextIOWrapper]:
    """Opens a file as UTF-8 text; a byte that is not UTF-8 becomes a lone surrogate, which `check_utf8` finds.

    Args:
        path: a plain or a gzip file.

    Raises:
        FileNotFoundError, ValueError: as `open_bytes`.
    """
    with (
        open_bytes(path) as binary,
        io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file,
    ):
        yield file


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines without their ends, counted from 1; only a line feed ends one, never a Unicode separator."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            yield number, line.removesuffix("\n").removesuffix("\r")


def line_groups(
    path: Path, is_separator: Callable[[str], bool] = lambda text: not text.strip()
) -> Iterator[list[tuple[int, str]]]:
    """Numbered lines in groups, such as sentences or documents; a separator is by default an empty line."""
    for separates, lines in itertools.groupby(numbered_lines(path), lambda line: is_separator(line[1])):
        if not separates:
            yield list(lines)


def check_utf8(text: str) -> None:
    """Raises a RowError for a text that UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        if 0xDC80 <= code <= 0xDCFF:
            raise RowError(f"byte 0x{code - 0xDC00:02x} is not UTF-8. Save the file as UTF-8.") from error
        raise RowError(f"\\u{code:04x} is half of a character. Write both halves, or remove it.") from error


class RowError(ValueError):
    """A row cannot be used; the message states the problem and the cure, without file and line."""


class RowCollector:
    """Collects the rows of a file into columns; a row that cannot be used raises an error, or is left out and counted.

    Args:
        owner: the reader, for errors.
        path: the file, for errors.
        names: the names of the columns.
        on_error: `"raise"` or `"skip"`.

    Raises:
        ValueError: `on_error` has another value.
    """

    def __init__(self, owner: str, path: Path, names: tuple[str, ...], *, on_error: str):
        self._skips = checks.one_of(owner, "on_error", on_error, ["raise", "skip"]) == "skip"
        self._owner = owner
        self._path = path
        self._names = names
        self._rows: list[tuple[Any, ...]] = []
        self._skipped: list[str] = []

    def keep(self, *values: Any) -> None:
        """Adds a row, one value per column."""
        self._rows.append(values)

    def leave_out(self, position: str, problem: RowError) -> None:
        """Counts a row that cannot be used, or raises its error.

        Args:
            position: where the row is in the file, e.g. `"line 3"`.
            problem: what is wrong with it.
        """
        message = f"{self._path}, {position}: {problem}"
        if not self._skips:
            raise ValueError(f'{message} With on_error="skip" such rows are left out.') from problem
        self._skipped.append(message)

    def columns(self, if_empty: str) -> Columns:
        """The rows that were kept, as columns; one warning reports all rows that were left out.

        Args:
            if_empty: the error for a file without rows.

        Raises:
            ValueError: no row was kept.
        """
        first = f"The first: {self._skipped[0]}" if self._skipped else ""
        if not self._rows:
            none_usable = f"none of the {len(self._skipped)} rows can be used. {first}"
            raise ValueError(f"{self._path}: {none_usable if first else if_empty}")
        if first:
            message = f"`{self._owner}`: left out {len(self._skipped)} rows that cannot be used. {first}"
            warnings.warn(message, UserWarning, stacklevel=3)  # the line that called the reader
        return Columns(self._names, map(list, zip(*self._rows, strict=True)), skipped=self._skipped)
