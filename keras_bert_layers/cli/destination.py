"""`check_destination`: whether a command may write to a path, and replace what is there."""

from __future__ import annotations

from pathlib import Path

from keras_bert_layers._internal import checks

# Every checkpoint, every SavedModel, every directory of `train` and every tokenizer has one of these files.
_MODEL_FILES = (
    *("config.json", "bert_config.json", "modules.json", "saved_model.pb", "model.keras"),
    "tokenizer_config.json",
)


def check_destination(path: Path, *, replace: bool, owner: str, argument: str = "DEST") -> None:
    """Refuses a path where a command may not write.

    Args:
        path: a path that does not exist, an empty directory, or a model to replace.
        replace: whether a model at `path` may be replaced: a `.keras` file, a checkpoint's directory, or a SavedModel.
        owner: the command, for errors.
        argument: its argument that holds `path`.

    Raises:
        ValueError: `path` is not local.
        FileExistsError: `path` exists and may not be replaced.
    """
    if "://" in str(path) or str(path).startswith(("gs:/", "hf:/", "s3:/")):
        cure = "Write to a local path, and copy it from there."
        raise ValueError(checks.message(owner, argument, "be a local path", str(path), cure))
    path = path.absolute()
    if any(path.iterdir()) if path.is_dir() else path.exists() or path.is_symlink():
        if not replace:
            raise FileExistsError(f"`{owner}`: {argument} must be new. {path} exists; --force replaces it.")
        if not _is_model(path):
            raise FileExistsError(f"`{owner}`: --force replaces models only. {path} is not a model.")


def _is_model(path: Path) -> bool:
    if path.is_dir():
        return not path.is_symlink() and any((path / name).is_file() for name in _MODEL_FILES)
    return path.suffix == ".keras" and path.is_file()
