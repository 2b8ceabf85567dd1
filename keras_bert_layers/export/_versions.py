"""Version folders, as TensorFlow Serving looks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks

NEXT = "next"


def version_folder(path: Path, version: Any) -> Path:
    """The folder `path/N` for a new version.

    Args:
        path: the folder of a model; the names of its versions' folders are numbers.
        version: the number, or `"next"` for one more than the largest.

    Raises:
        TypeError, ValueError: `version` is neither.
        FileExistsError: the version exists. A server that has loaded it would not notice a change.
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
            f"`export`: `version` must be new, as a server loads a version only once. Received: version={version} of "
            f"{str(path)!r}, which exists. The next free version is {free}."
        )
    return path / str(version)
