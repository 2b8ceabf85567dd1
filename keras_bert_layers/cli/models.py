"""Loading models for commands: a task or an encoder with its preprocessor, or an exported SavedModel."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_bert_layers.checkpoints.task_table import TASKS, task_of
from keras_bert_layers.cli.terminal import progress, quiet_start
from keras_bert_layers.export.signature import TEXT_INPUTS

if TYPE_CHECKING:
    from keras_bert_layers.tasks import Task

#: The file by which a directory is known as a SavedModel.
PROGRAM_FILE = "saved_model.pb"

#: The model in a directory that the command `train` wrote.
MODEL = "model.keras"

#: The folder of the versions of its SavedModel there, where `serve` looks.
EXPORT = "saved_model"

ENCODER = "encoder"

FLOAT_BYTES = 4


class LoadedModel(NamedTuple):
    """A model and its preprocessor.

    Args:
        model: a task, or a `BertBackbone`.
        preprocessor: the task's or the encoder's preprocessor, or None.
        task: the name of the task for `load_task`, or the class of one that it only reads; None for an encoder.
    """

    model: Any
    preprocessor: Any
    task: str | None

    @property
    def answers_texts(self) -> bool:
        """Whether it is a task with a tokenizer."""
        return self.task is not None and self.preprocessor is not None

    def encoder(self) -> LoadedModel:
        """The model without its head."""
        return self if self.task is None else LoadedModel(self.model.backbone, self.preprocessor, None)


def source_of(named: str) -> str:
    """The source that a user names; for a directory that `train` wrote, the model in it."""
    written = Path(named) / MODEL
    return str(written) if written.is_file() else named


def keras_file(source: str) -> Path | None:
    """The `.keras` file that a source of `source_of` is, or None for a directory and for a name that stands for one."""
    return path if (path := Path(source)).suffix == ".keras" else None


def load_model(source: str, task: str | None, *, owner: str, tokenizer: bool = True) -> LoadedModel:
    """Loads the trained task of a source, or its encoder if it has no trained head.

    Args:
        source: a directory, `hf://…`, a preset's name, a `.keras` file, what `train` wrote, or a `distribution.Backup`.
        task: the task to load, `"encoder"`, or None for the task that the source states.
        owner: the command, for errors.
        tokenizer: False to load a model without its preprocessor.

    Returns:
        The model; all its weights come from the source.

    Raises:
        CheckpointError: the loaders reject the source.
        ValueError: the source has no trained head for the task.
    """
    with quiet_start():
        import keras_bert_layers.checkpoints.task_loader  # noqa: F401  and Keras, and its backend
    source = source_of(source)
    if keras_file(source) or any(Path(source).glob("[0-9]*/_CHECKPOINT_METADATA")):  # the second is Orbax's
        return _keras_model(Path(source), task, owner=owner)
    return _checkpoint_model(source, task, owner=owner, tokenizer=tokenizer)


def load_task_of_texts(source: str, task: str | None, *, owner: str, argument: str) -> LoadedModel:
    """`load_model` for a model that answers texts; ValueError, which names the argument, for any other."""
    loaded = load_model(source, task, owner=owner)
    if not loaded.answers_texts:
        kind = "an encoder" if loaded.task is None else "a model of token ids"
        cure = "For embeddings: --task sentence_encoder."
        raise ValueError(f"`{owner}`: {argument} must have a task and a tokenizer. Received: {source}, {kind}. {cure}")
    return loaded


def digest_of(model: Any) -> str:
    """The SHA-256 of a task's settings, tokenizer and weights: wherever its files are, and on every backend."""
    from keras import ops

    settings = json.dumps(model.get_config(), default=str)
    digest = hashlib.sha256(re.sub(r'"name": "[^"]*"', "", settings).encode())  # Keras numbers names
    for weight in model.weights:
        digest.update(ops.convert_to_numpy(weight).tobytes())
    return digest.hexdigest()


def column_dtypes(task: Any) -> dict[str, str]:
    """The dtypes of the columns that a task reads beside a text, by their names."""
    features = getattr(getattr(task, "columns", None), "features", {})
    return {name: feature.dtype for name, feature in features.items()}


def inputs_of(task: Task) -> dict[str, int | str]:
    """The inputs of a task, as `text_rows` takes them."""
    axes = {name: len(shape) for name, (shape, _) in task.text_inputs().items() if name in TEXT_INPUTS}
    return {**axes, **column_dtypes(task)}


def _checkpoint_model(source: str, task: str | None, *, owner: str, tokenizer: bool) -> LoadedModel:
    """A model from a directory, or from a name that stands for one."""
    from keras_bert_layers.checkpoints import load_backbone, load_preprocessor, load_task
    from keras_bert_layers.checkpoints.hub import resolve
    from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint
    from keras_bert_layers.checkpoints.task_loader import own_head
    from keras_bert_layers.checkpoints.weights.reports import watched

    directory = resolve(source, owner=owner)  # once, as it compares every file's hash
    checkpoint = open_checkpoint(directory, owner=owner)
    heads = checkpoint.trained_heads()
    trained = list(dict.fromkeys(head.name for head in heads))
    wanted = task or (own_head(checkpoint, heads).name if heads else ENCODER)
    if wanted not in (*trained, ENCODER) and TASKS[wanted].head:  # any BERT can run a task without a head
        raise ValueError(
            f"`{owner}`: --task must be one that the checkpoint was trained for: {', '.join([*trained, ENCODER])}. "
            f"Received: {wanted}. To train a new head, use `load_task` in Python."
        )
    infos = checkpoint.weights.infos.values()
    total = sum(math.prod(info.shape) for info in infos) * FLOAT_BYTES
    with progress(f"Reading {source}", total, unit="B") as advance, watched(advance):
        if wanted != ENCODER:
            options: dict[str, Any] = {} if tokenizer else {"preprocessor": None}
            model = load_task(directory, wanted, **options)
            return LoadedModel(model, model.preprocessor, wanted)
        return LoadedModel(load_backbone(directory), load_preprocessor(directory) if tokenizer else None, None)


def _keras_model(path: Path, task: str | None, *, owner: str) -> LoadedModel:
    """The model in a `.keras` file, or in a directory of `distribution.Backup`."""
    from keras_bert_layers import BertBackbone
    from keras_bert_layers.checkpoints import CheckpointError
    from keras_bert_layers.checkpoints.files.keras_file import read_keras_file
    from keras_bert_layers.distribution import load_backup
    from keras_bert_layers.tasks import Task

    is_file = path.suffix == ".keras"
    if is_file and not path.is_file():
        raise CheckpointError(f"`{owner}`: no such file: {path}.")
    model: Any = read_keras_file(path) if is_file else load_backup(path)
    row, kind = task_of(model), type(model).__name__
    name = row.name if row is not None else kind if isinstance(model, Task) else None
    if name is None and not isinstance(model, BertBackbone):
        raise CheckpointError(f"`{owner}`: {path} must hold a task or a BertBackbone. Received: {kind}.")
    loaded = LoadedModel(model, getattr(model, "preprocessor", None), name)
    if task == ENCODER:
        return loaded.encoder()
    if task not in (None, name):
        raise ValueError(f"`{owner}`: --task must be the task of {path}: {name or ENCODER}. Received: {task}.")
    return loaded


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
        raise ValueError(f"`{owner}`: {path} is not a complete SavedModel: {error}") from error
