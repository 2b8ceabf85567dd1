"""Folders of versions, as TensorFlow Serving looks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks

NEXT = "next"


def version_folder(path: Path, version: Any) -> Path:
    """The folder `path/N` for a new version.

    Args:
        path: the folder of a model, whose versions are folders with a number for a name.
        version: the number, or `"next"` for one more than the largest.

    Raises:
        TypeError, ValueError: a version that is neither.
        FileExistsError: the version is there. A server may have loaded it, and would not notice another.
    """
    taken = [int(child.name) for child in path.iterdir() if child.name.isdecimal()] if path.is_dir() else []
    free = max(taken, default=0) + 1
    if version == NEXT:
        return path / str(free)
    if isinstance(version, str):
        raise TypeError(checks.message("export", "version", "be a whole number or 'next'", version))
    version = checks.positive_integer("export", "version", version)
    if version in taken:
        raise FileExistsError(
            f"`export`: `version` must be new, as a server does not read one again that it has. Received: "
            f"version={version} of {str(path)!r}, which is there. The next free one is {free}."
        )
    return path / str(version)
