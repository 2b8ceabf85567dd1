"""Which files are read, and in which units: parts of the text that are read without the others."""

from __future__ import annotations

import glob
import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers.data._text_file import GZIP_MAGIC

TEXT, JSON, PARQUET = "text", "json", "parquet"
FORMS = {".txt": TEXT, ".jsonl": JSON, ".ndjson": JSON, ".parquet": PARQUET}


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


def form_of(path: Path) -> str:
    """What a file holds, by its name: `TEXT`, `JSON` or `PARQUET`; "" for any other."""
    return FORMS.get(Path(path.name.lower().removesuffix(".gz")).suffix, "")


def paths_of(owner: str, files: Any) -> list[Path]:
    """The files of a path, a pattern, or a list of them; those of a pattern in the order of their names.

    Raises:
        TypeError: not paths.
        FileNotFoundError: no such file.
        ValueError: a name that does not tell the form, or no file.
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
            cure = "Its name tells how it is read: rename it."
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


def units_of(paths: Sequence[Path], block_bytes: int) -> list[tuple[Piece, ...]]:
    """Units of about `block_bytes` bytes: small files together, and large ones in equal parts, where they can be.

    What is compressed is read from its start, so a large gzip or Parquet file is one unit.
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
