"""`destination`: where a conversion may write, and how what is there is replaced."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from keras_bert_layers._internal import checks

_OWNER = "convert"
# One of these is in every checkpoint and in every SavedModel.
_MARKS = ("config.json", "bert_config.json", "modules.json", "saved_model.pb")


@contextlib.contextmanager
def destination(path: Path, *, replace: bool) -> Iterator[Path]:
    """A place to write a model to, which is at `path` when the block ends well.

    Args:
        path: nothing, an empty directory, or a model that is replaced.
        replace: whether a model there may be replaced: a `.keras` file, a checkpoint's directory, or a SavedModel.

    Yields:
        A place of the same name where nothing is, in a hidden directory beside `path`. After any exception, an
        interrupt included, it is gone, and what was at `path` is still there.

    Raises:
        ValueError: `path` is on another machine.
        FileExistsError: something is at `path` that may not be replaced.
        OSError: `path` cannot be written to.
    """
    if "://" in str(path) or str(path).startswith(("gs:/", "hf:/", "s3:/")):
        cure = "Write to a local place, and copy it there."
        raise ValueError(checks.message(_OWNER, "DEST", "be a local path", str(path), cure))
    path = path.absolute()
    if _is_taken(path):
        if not replace:
            raise FileExistsError(f"`{_OWNER}`: DEST must be new. {path} is there; --force replaces it.")
        if not _is_model(path):
            raise FileExistsError(f"`{_OWNER}`: --force replaces models only. {path} holds something else.")
    parents = [parent for parent in path.parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
            unfinished = Path(folder) / path.name
            yield unfinished
            _move(unfinished, path, aside=Path(folder) / "replaced")
    except BaseException:
        for parent in parents:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _is_taken(path: Path) -> bool:
    if path.is_dir():
        return any(path.iterdir())
    return path.exists() or path.is_symlink()


def _is_model(path: Path) -> bool:
    """Whether nothing but a model would be lost."""
    if path.is_dir():
        return not path.is_symlink() and any((path / mark).is_file() for mark in _MARKS)
    return path.suffix == ".keras" and path.is_file()


def _move(unfinished: Path, path: Path, *, aside: Path) -> None:
    """Puts the new model in place; where that fails, the old one comes back."""
    was_there = path.exists()
    if was_there:
        path.rename(aside)
    try:
        os.replace(unfinished, path)
    except BaseException:
        if was_there:
            aside.rename(path)
        raise
