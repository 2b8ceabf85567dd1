"""`load_saved_model`: an exported model, in TensorFlow alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_bert_layers.cli.terminal import quiet_start

#: The file by which a directory is known as a SavedModel.
PROGRAM_FILE = "saved_model.pb"


def load_saved_model(path: str | Path, *, owner: str, cure: str) -> Any:
    """Loads what `task.export` wrote.

    Args:
        path: the directory of the SavedModel.
        owner: the command, for errors.
        cure: what to do where tensorflow-text is not installed, for the error.

    Returns:
        TensorFlow's object; keep it, as a signature does not keep its variables.

    Raises:
        ModuleNotFoundError: tensorflow-text is not installed.
        ValueError: the directory cannot be read.
    """
    try:
        with quiet_start():
            import tensorflow as tf
            import tensorflow_text  # noqa: F401  registers the tokenizer's operations
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"`{owner}`: {path} is a SavedModel of strings, which needs tensorflow-text. It is not installed; "
            f"there is none for Windows. {cure}",
            name=error.name,
        ) from error
    try:
        return tf.saved_model.load(str(path))
    except (ValueError, OSError, RuntimeError, tf.errors.OpError) as error:
        raise ValueError(f"`{owner}`: {path} is not a whole SavedModel: {error}") from error
