"""Answers of models as lines of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_layers.cli.text_rows import Inputs, TextRow

_PADDING: tuple[Any, ...] = ("", -1, [])


def answer_lines(answers: Mapping[str, np.ndarray], rows: Sequence[TextRow], inputs: Inputs) -> Iterator[str]:
    """Yields one JSON object per row, which does not depend on the other rows of the batch.

    Padding is removed: `""` and -1 after the last entity or the last mask, and the probabilities of choices that the
    row does not have. `bytes_cut` of an exported model is left out where it is 0. float32 values are written with as
    many digits as they need.

    Args:
        answers: name -> array, rows first, strings as `str` or `bytes`; or those of several tasks by the task's name.
        rows: the inputs.
        inputs: those of the model.

    Yields:
        Lines, without their ends.

    Examples:
        >>> answers = {"label": np.array([b"good"], object), "probabilities": np.array([[0.1, 0.9]], "float32")}
        >>> list(answer_lines(answers, [TextRow("argument 1", ("A film.",))], {"text": 1}))
        ['{"label": "good", "probabilities": [0.1, 0.9]}']
    """
    answers = {key: array for name, value in answers.items() for key, array in _named(name, value)}
    has_lists = any(array.dtype == object and array.ndim > 1 for array in answers.values())
    for index, row in enumerate(rows):
        values = {name: _plain(answers[name][index]) for name in sorted(answers)}
        if has_lists:
            values = {name: _without_padding(value) for name, value in values.items()}
        for kind, texts in zip(inputs.values(), row.texts, strict=True):
            if kind == 2 and "probabilities" in values:
                num_choices = max(number for number, text in enumerate(texts, start=1) if text)
                values["probabilities"] = values["probabilities"][:num_choices]
        if values.get("bytes_cut") == 0:
            del values["bytes_cut"]
        yield json.dumps(values, ensure_ascii=False)


def _named(name: str, value: Any) -> list[tuple[str, np.ndarray]]:
    """An answer; or those of a task, named as its export does."""
    return [(f"{name}_{key}", array) for key, array in value.items()] if isinstance(value, Mapping) else [(name, value)]


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


def _without_padding(value: object) -> Any:
    """A list without the padding at its end, at every level."""
    if not isinstance(value, list):
        return value
    parts = [_without_padding(part) for part in value]
    while parts and parts[-1] in _PADDING:
        parts.pop()
    return parts
