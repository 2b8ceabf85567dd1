"""`open_checkpoint`: opens a checkpoint of any dialect."""

import os
import re
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.checkpoint import Checkpoint, plain_name
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.google.directory import GoogleDirectory, GoogleHubDirectory
from keras_bert_layers.checkpoints.hub import resolve
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.huggingface.weight_files import SUFFIXES
from keras_bert_layers.checkpoints.kerashub.directory import TASK_WEIGHTS, WEIGHTS, KerasHubDirectory

_TENSORFLOW_FILE = re.compile(r"\.(?:index|data-\d{5}-of-\d{5})$")
_SHARDS_INDEX = re.compile(r".+\.(?:safetensors|bin)\.index\.(?:[^.]+\.)?json")
_RECOGNISED: tuple[type[Any], ...] = (KerasHubDirectory, GoogleDirectory, GoogleHubDirectory)


def open_checkpoint(source: str | os.PathLike[str], *, owner: str, adapter: str | None = None) -> Checkpoint:
    """Opens the checkpoint that `source` names, without reading its weights.

    Args:
        source: a directory, the file with the weights in it, or a name for `hub.resolve`.
        owner: the public function that was called, for errors.
        adapter: the name of the adapter that is added to the weights; None for none.

    Returns:
        The checkpoint. Its files decide the dialect; HuggingFace's is the default.

    Raises:
        TypeError: `source` is not a path.
        CheckpointError: the directory does not exist or may not be read; the name, or that of the adapter, is unknown.
    """
    source = resolve(source, owner=owner)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(checks.message(owner, "source", "be a path", source))
    weights = named_weights(Path(source))
    directory = Path(source) if weights is None else Path(source).parent
    if not directory.is_dir():
        raise CheckpointError(checks.message(owner, "source", "be an existing directory", str(source)))
    if not os.access(directory, os.R_OK | os.X_OK):
        raise CheckpointError(checks.message(owner, "source", "be a directory that may be read", str(source)))
    checkpoint: Checkpoint = _dialect(directory, weights)(directory, owner=owner, weights_file=weights)
    if adapter is not None:
        names = {plain_name(name): name for name in checkpoint.adapters}
        checkpoint.adapter = names.get(plain_name(checks.instance(owner, "adapter", adapter, str)))
        if checkpoint.adapter is None:
            rule = (
                f"be one of {list(checkpoint.adapters)}" if names else "be None: there are no adapters to choose from"
            )
            raise CheckpointError(f"{checkpoint}: `adapter` must {rule}. Received: {adapter!r}.")
    return checkpoint


def named_weights(source: Path) -> str | None:
    """The file of weights that a path names, or the prefix of a TensorFlow checkpoint's files; None for any other.

    Examples:
        >>> named_weights(Path("no/such/model.safetensors")) is None
        True
    """
    if source.is_dir() or not source.name:
        return None
    prefix = _TENSORFLOW_FILE.sub("", source.name)
    if source.with_name(f"{prefix}.index").is_file():
        return prefix
    is_weights = source.name.endswith(SUFFIXES) or _SHARDS_INDEX.fullmatch(source.name)
    is_other_keras_file = source.name.endswith(".weights.h5") and source.name not in (WEIGHTS, TASK_WEIGHTS)
    return source.name if is_weights and not is_other_keras_file and source.is_file() else None


def _dialect(directory: Path, weights: str | None) -> type[Any]:
    if weights is not None and (directory / f"{weights}.index").is_file():
        return GoogleHubDirectory if (directory / "config.json").is_file() else GoogleDirectory
    if weights is not None and not weights.endswith(".weights.h5"):
        return HuggingFaceDirectory
    return next((kind for kind in _RECOGNISED if kind.describes(directory)), HuggingFaceDirectory)
