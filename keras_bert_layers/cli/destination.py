"""`destination`: where a conversion writes, and how it replaces what is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.written_whole import written_whole

_OWNER = "convert"
# Every checkpoint and every SavedModel has one of these files.
_MODEL_FILES = ("config.json", "bert_config.json", "modules.json", "saved_model.pb")


@contextlib.contextmanager
def destination(path: Path, *, replace: bool) -> Iterator[Path]:
    """A path to write a model to, which is moved to `path` when the block ends without an error.

    Args:
        path: a path that does not exist, an empty directory, or a model to replace.
        replace: whether a model at `path` may be replaced: a `.keras` file, a checkpoint's directory, or a SavedModel.

    Yields:
        A free path of the same name, in a hidden directory beside `path`. After any exception, an interrupt included,
        it is removed, and `path` is as before.

    Raises:
        ValueError: `path` is not local.
        FileExistsError: `path` exists and may not be replaced.
        OSError: `path` is not writable.
    """
    if "://" in str(path) or str(path).startswith(("gs:/", "hf:/", "s3:/")):
        cure = "Write to a local path, and copy it from there."
        raise ValueError(checks.message(_OWNER, "DEST", "be a local path", str(path), cure))
    path = path.absolute()
    if any(path.iterdir()) if path.is_dir() else path.exists() or path.is_symlink():
        if not replace:
            raise FileExistsError(f"`{_OWNER}`: DEST must be new. {path} exists; --force replaces it.")
        if not _is_model(path):
            raise FileExistsError(f"`{_OWNER}`: --force replaces models only. {path} is not a model.")
    with written_whole(path) as unfinished:
        yield unfinished


def _is_model(path: Path) -> bool:
    if path.is_dir():
        return not path.is_symlink() and any((path / name).is_file() for name in _MODEL_FILES)
    return path.suffix == ".keras" and path.is_file()
