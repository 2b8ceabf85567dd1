"""Answers to rows of text as JSON lines, from a Keras task or an exported SavedModel."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers.cli.models import PROGRAM_FILE, input_axes, load_saved_model, load_task_of_texts
from keras_bert_layers.cli.text_rows import TextRow, columns_of

_PADDING: tuple[Any, ...] = ("", -1, [])

_SIGNATURE = "serving_default"

# The inputs of every task, in the order in which a user writes them; a SavedModel does not keep it.
_ORDER = ("text", "question", "prompt", "text_pair", "context", "choices")


def open_answerer(source: str, task: str | None, *, owner: str) -> TaskAnswerer | SavedModelAnswerer:
    """Loads the model that answers.

    Args:
        source: the directory of a SavedModel, or a source that `load_model` takes.
        task: as for `load_model`.
        owner: the command, for errors.

    Returns:
        An object with `inputs` and `answer`. Both kinds give the same answers; a SavedModel that has a bound on the
        size of texts also returns `bytes_cut`.

    Raises:
        CheckpointError, ValueError: the source cannot be read, or does not answer.
    """
    if (Path(source) / PROGRAM_FILE).is_file():
        if task is not None:
            raise ValueError(f"`{owner}`: --task is for checkpoints; a SavedModel has one task. Received: {task}.")
        return SavedModelAnswerer(source, owner=owner)
    return TaskAnswerer(load_task_of_texts(source, task, owner=owner, argument="MODEL").model)


class TaskAnswerer:
    """Answers with a Keras task.

    Args:
        task: a task with a preprocessor.

    Attributes:
        inputs: each input's name -> its number of axes: 1 for one text per row, 2 for several.
    """

    def __init__(self, task: Any):
        self._task = task
        self.inputs = input_axes(task)

    def answer(self, rows: Sequence[TextRow]) -> dict[str, np.ndarray]:
        """The answers to some rows: name -> array, rows first, strings as `str`."""
        return self._task.answer(columns_of(rows), batch_size=len(rows))


class SavedModelAnswerer:
    """Answers with a SavedModel that `task.export` wrote, in TensorFlow alone.

    Args:
        source: its directory.
        owner: the command, for errors.

    Attributes:
        inputs: each input's name -> its number of axes: 1 for one text per row, 2 for several.

    Raises:
        ValueError: it cannot be read, or its inputs are not strings.
    """

    def __init__(self, source: str, *, owner: str):
        self._owner = owner
        cure = "Give the checkpoint or the `.keras` file that it was made from."
        self._model = load_saved_model(source, owner=owner, cure=cure)
        signature = self._model.signatures.get(_SIGNATURE)
        specs = {} if signature is None else signature.structured_input_signature[1]
        if not specs or not all(name in _ORDER and spec.dtype == "string" for name, spec in specs.items()):
            raise ValueError(f"`{owner}`: {source} must have a signature {_SIGNATURE!r} of strings. Found: {[*specs]}.")
        self._signature = signature
        self.inputs = {name: specs[name].shape.rank for name in sorted(specs, key=_ORDER.index)}

    def answer(self, rows: Sequence[TextRow]) -> dict[str, np.ndarray]:
        """The answers to some rows: name -> array, rows first, strings as bytes."""
        import tensorflow as tf

        def tensor(values: Sequence[Any]) -> Any:
            if isinstance(values[0], str):
                return tf.constant(values, tf.string)
            return tf.ragged.constant(values, dtype=tf.string).to_tensor("")  # choices, padded with empty ones

        columns = zip(self.inputs, zip(*(row.texts for row in rows), strict=True), strict=True)
        try:
            answers = self._signature(**{name: tensor(values) for name, values in columns})
        except tf.errors.OpError as error:
            raise ValueError(f"`{self._owner}`: {error.message}") from error
        return {name: tensor.numpy() for name, tensor in answers.items()}


def answer_lines(
    answers: Mapping[str, np.ndarray], rows: Sequence[TextRow], inputs: Mapping[str, int]
) -> Iterator[str]:
    """Yields one JSON object per row, which does not depend on the other rows of the batch.

    Padding is removed: `""` and -1 after the last entity or the last mask, and the probabilities of choices that the
    row does not have. `bytes_cut` of an exported model is left out where it is 0. float32 values are written with as
    many digits as they need.

    Args:
        answers: name -> array, rows first, strings as `str` or `bytes`.
        rows: the inputs.
        inputs: the names of the inputs, with their numbers of axes.

    Yields:
        Lines, without their ends.

    Examples:
        >>> answers = {"label": np.array([b"good"], object), "probabilities": np.array([[0.1, 0.9]], "float32")}
        >>> list(answer_lines(answers, [TextRow("argument 1", ("A film.",))], {"text": 1}))
        ['{"label": "good", "probabilities": [0.1, 0.9]}']
    """
    has_lists = any(array.dtype == object and array.ndim > 1 for array in answers.values())
    for index, row in enumerate(rows):
        values = {name: _plain(answers[name][index]) for name in sorted(answers)}
        if has_lists:
            values = {name: _without_padding(value) for name, value in values.items()}
        for num_axes, texts in zip(inputs.values(), row.texts, strict=True):
            if num_axes > 1 and "probabilities" in values:
                num_choices = max(number for number, text in enumerate(texts, start=1) if text)
                values["probabilities"] = values["probabilities"][:num_choices]
        if values.get("bytes_cut") == 0:
            del values["bytes_cut"]
        yield json.dumps(values, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value as JSON has it; JSON has no infinity and no NaN, so these become None."""
    if isinstance(value, np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.floating):
        number = float(str(value))  # the shortest digits that give the same float32
        return number if math.isfinite(number) else None
    return value.item()


def _without_padding(value: Any) -> Any:
    """A list without the padding at its end, at every level."""
    if not isinstance(value, list):
        return value
    parts = [_without_padding(part) for part in value]
    while parts and parts[-1] in _PADDING:
        parts.pop()
    return parts
