"""What can be asked: a task in Keras, or an exported SavedModel without it; both give the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from keras_bert_layers._cli.models import load_model
from keras_bert_layers._cli.terminal import quiet_start
from keras_bert_layers._cli.text_rows import TextRow, columns_of

_SIGNATURE = "serving_default"
_PROGRAM_FILE = "saved_model.pb"
# The inputs of every task, in the order in which a user writes them; a SavedModel does not keep it.
_ORDER = ("text", "question", "prompt", "text_pair", "context", "choices")


class Answerer(Protocol):
    """What gives answers to rows of text."""

    @property
    def inputs(self) -> Mapping[str, int]:
        """Each input's name -> its number of axes: 1 for a text in a row, 2 for several."""
        ...

    def ask(self, rows: Sequence[TextRow]) -> dict[str, np.ndarray]:
        """The answers to some rows: name -> array, rows first, strings as bytes."""
        ...


def open_answerer(source: str, task: str | None, *, owner: str) -> Answerer:
    """What answers for a source.

    Args:
        source: the directory of a SavedModel, or what `load_model` takes.
        task: as for `load_model`.
        owner: the command, for errors.

    Raises:
        CheckpointError, ValueError: the source cannot be read, or answers nothing.
    """
    if (Path(source) / _PROGRAM_FILE).is_file():
        if task is not None:
            raise ValueError(f"`{owner}`: --task is for checkpoints; a SavedModel has one task. Received: {task}.")
        return SavedModelAnswerer(source, owner=owner)
    loaded = load_model(source, task, owner=owner)
    if loaded.task is None or loaded.preprocessor is None:
        raise ValueError(
            f"`{owner}`: MODEL must have a task and a tokenizer. Received: {source}, "
            f"{'an encoder' if loaded.task is None else 'a model of token ids'}. For vectors: --task sentence_encoder."
        )
    return TaskAnswerer(loaded.model)


class TaskAnswerer:
    """Asks a task in Keras, through its `answer`.

    Args:
        task: a task with a preprocessor.
    """

    def __init__(self, task: Any):
        self._task = task
        self.inputs = {name: len(shape) for name, (shape, _) in task.text_inputs().items()}

    def ask(self, rows: Sequence[TextRow]) -> dict[str, np.ndarray]:
        """The answers to some rows."""
        return self._task.answer(columns_of(rows), batch_size=len(rows))


class SavedModelAnswerer:
    """Asks a SavedModel that `task.export` wrote, in TensorFlow alone.

    Args:
        source: its directory.
        owner: the command, for errors.

    Raises:
        ValueError: it cannot be read, or takes something else than strings.
    """

    def __init__(self, source: str, *, owner: str):
        with quiet_start():
            import tensorflow as tf
            import tensorflow_text  # noqa: F401  registers the tokenizer's operations
        self._owner = owner
        try:
            self._model = tf.saved_model.load(source)  # kept: the signature does not keep its variables
        except (ValueError, OSError, RuntimeError, tf.errors.OpError) as error:
            raise ValueError(f"`{owner}`: {source} is not a whole SavedModel: {error}") from error
        signature = self._model.signatures.get(_SIGNATURE)
        specs = {} if signature is None else signature.structured_input_signature[1]
        if not specs or not all(name in _ORDER and spec.dtype == tf.string for name, spec in specs.items()):
            raise ValueError(f"`{owner}`: {source} must have a signature {_SIGNATURE!r} of strings. Found: {[*specs]}.")
        self._signature = signature
        self.inputs = {name: specs[name].shape.rank for name in sorted(specs, key=_ORDER.index)}

    def ask(self, rows: Sequence[TextRow]) -> dict[str, np.ndarray]:
        """The answers to some rows."""
        import tensorflow as tf

        columns = {name: [row.texts[place] for row in rows] for place, name in enumerate(self.inputs)}
        tensors = {
            name: tf.constant(values, tf.string)
            if self.inputs[name] == 1
            else tf.ragged.constant(values, dtype=tf.string).to_tensor("")
            for name, values in columns.items()
        }
        try:
            answers = self._signature(**tensors)
        except tf.errors.OpError as error:
            raise ValueError(f"`{self._owner}`: {error.message}") from error
        return {name: tensor.numpy() for name, tensor in answers.items()}
