"""`load_model`: what a user names on the command line, as a model with what reads its text."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_layers._cli.terminal import progress, quiet_start

TASKS = (
    *("classifier", "cross_encoder", "dual_encoder", "masked_lm", "multiple_choice", "pretrainer"),
    *("question_answerer", "sentence_encoder", "token_classifier"),
)
ENCODER = "encoder"
# Their answers come from the encoder alone, so that any BERT can give them.
_WITHOUT_A_HEAD = ("sentence_encoder", "dual_encoder")
_FLOAT_BYTES = 4


class LoadedModel(NamedTuple):
    """A model and what makes its inputs.

    Args:
        model: a task, or a `BertBackbone`.
        preprocessor: the task's own, or the encoder's; None where there is none.
        task: the name of the task as `load_task` has it; None for an encoder.
    """

    model: Any
    preprocessor: Any
    task: str | None


def load_model(source: str, task: str | None, *, owner: str, tokenizer: bool = True) -> LoadedModel:
    """The trained task of a source, or its encoder where it states none.

    Args:
        source: a directory, `hf://…`, a preset's name, or a `.keras` file.
        task: the task that is wanted, `"encoder"`, or None for what the source itself says.
        owner: the command, for errors.
        tokenizer: False for a model without its text side.

    Returns:
        The model; every weight of it is the source's.

    Raises:
        CheckpointError: what the loaders refuse.
        ValueError: the source has no trained head for the task.
    """
    with quiet_start():
        import keras_bert_layers.checkpoints.task_loader  # noqa: F401  and Keras, and its backend
    if Path(source).suffix == ".keras":
        return _saved_model(Path(source), task, owner=owner)
    return _checkpoint_model(source, task, owner=owner, tokenizer=tokenizer)


def task_name(model: Any) -> str | None:
    """The name by which `load_task` knows the class of a task; None for an encoder."""
    from keras_bert_layers import tasks

    names = {getattr(tasks, "Bert" + "".join(map(_capital, name.split("_")))): name for name in TASKS}
    return names.get(type(model))


def _capital(word: str) -> str:
    return word.upper() if word == "lm" else word.capitalize()


def _checkpoint_model(source: str, task: str | None, *, owner: str, tokenizer: bool) -> LoadedModel:
    """A model from a directory, or from a name that stands for one."""
    from keras_bert_layers.checkpoints import load_backbone, load_preprocessor, load_task
    from keras_bert_layers.checkpoints._progress import watched
    from keras_bert_layers.checkpoints.hub import resolve
    from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint

    directory = resolve(source, owner=owner)  # once: it looks at every file's hash
    checkpoint = open_checkpoint(directory, owner=owner)
    stated = [kind.name for kind in checkpoint.stated_tasks()]
    wanted = task or next(iter(stated), ENCODER)
    if wanted not in (*stated, *_WITHOUT_A_HEAD, ENCODER):
        raise ValueError(
            f"`{owner}`: --task must be one that the checkpoint was trained for: {', '.join([*stated, ENCODER])}. "
            f"Received: {wanted}. A fresh head is made and trained in Python, with `load_task`."
        )
    infos = checkpoint.open_weights().infos.values()
    total = sum(_num_values(info.shape) for info in infos) * _FLOAT_BYTES
    with progress(f"Reading {source}", total, unit="B") as advance, watched(advance):
        if wanted != ENCODER:
            options = {} if tokenizer else {"preprocessor": None}
            model = load_task(directory, wanted, **options)
            return LoadedModel(model, model.preprocessor, wanted)
        preprocessor = load_preprocessor(directory) if tokenizer else None
        return LoadedModel(load_backbone(directory), preprocessor, None)


def _saved_model(path: Path, task: str | None, *, owner: str) -> LoadedModel:
    """What a `.keras` file holds."""
    from keras_bert_layers import BertBackbone
    from keras_bert_layers.checkpoints import CheckpointError
    from keras_bert_layers.checkpoints.keras_file import read_keras_file

    if not path.is_file():
        raise CheckpointError(f"`{owner}`: no such file: {path}.")
    model: Any = read_keras_file(path)
    name = task_name(model)
    if name is None and not isinstance(model, BertBackbone):
        raise CheckpointError(
            f"`{owner}`: {path} must hold a task or a BertBackbone. Received: {type(model).__name__}."
        )
    if name is not None and task == ENCODER:
        return LoadedModel(model.backbone, model.preprocessor, None)
    if task not in (None, name or ENCODER):
        raise ValueError(f"`{owner}`: --task must be what {path} holds: {name or ENCODER}. Received: {task}.")
    return LoadedModel(model, getattr(model, "preprocessor", None), name)


def _num_values(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count
