"""Text files as people have them: plain or gzip, with or without a byte order mark."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

GZIP_MAGIC = b"\x1f\x8b"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@contextlib.contextmanager
def open_text(path: Path, *, newline: str = "\n") -> Iterator[io.TextIOWrapper]:
    """A file as UTF-8 text; a byte that is not UTF-8 is kept as a lone surrogate, for `not_utf8` to find in its row.

    Args:
        path: a plain or a gzip file, told apart by their first bytes.
        newline: as in `open`; the csv module wants `""`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: gzip data that are damaged or end too soon; UTF-16.
    """
    with path.open("rb") as raw:
        start = raw.read(2)
        raw.seek(0)
        if start in UTF_16_MARKS:
            raise ValueError(f"{path}: the file is UTF-16. Save it as UTF-8.")
        binary = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if start == GZIP_MAGIC else raw
        try:
            with io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape", newline=newline) as file:
                yield file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: the gzip data are damaged ({error}). Get the file again.") from error


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines without their ends, counted from 1; only a line feed ends one, never a Unicode separator."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            yield number, line.removesuffix("\n").removesuffix("\r")


def not_utf8(*texts: str) -> str:
    """What is wrong with texts that UTF-8 cannot hold; `""` if nothing is."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            code = ord(text[error.start])
            if 0xDC80 <= code <= 0xDCFF:
                return f"byte 0x{code - 0xDC00:02x} is not UTF-8. Save the file as UTF-8."
            return f"\\u{code:04x} is half of a character. Write both halves, or remove it."
    return ""
