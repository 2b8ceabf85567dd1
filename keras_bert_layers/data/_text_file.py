"""UTF-8 text files: plain or gzip, with or without a byte order mark."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keras_bert_layers.data._row_collector import RowError

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
