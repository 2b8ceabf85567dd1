"""From arrays of answers to lines of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_layers._cli.text_rows import TextRow

_NO_NUMBER = -1


def answer_lines(
    answers: Mapping[str, np.ndarray], rows: Sequence[TextRow], inputs: Mapping[str, int]
) -> Iterator[str]:
    """One JSON object for each row, which does not depend on the rows beside it.

    What pads a row of a batch to the widest is left out: `""` and -1 behind the last entity or the last mask, and
    the probabilities of choices that the row does not have. float32 numbers have as many digits as they need.

    Args:
        answers: name -> array, rows first, strings as bytes.
        rows: what was asked.
        inputs: the names of what was asked, with their numbers of axes.

    Yields:
        Lines, without their ends.

    Examples:
        >>> answers = {"label": np.array([b"good"], object), "probabilities": np.array([[0.1, 0.9]], "float32")}
        >>> list(answer_lines(answers, [TextRow("argument 1", ("A film.",))], {"text": 1}))
        ['{"label": "good", "probabilities": [0.1, 0.9]}']
    """
    has_lists = any(array.dtype == object and array.ndim > 1 for array in answers.values())
    for number, row in enumerate(rows):
        values = {name: _plain(answers[name][number]) for name in sorted(answers)}
        if has_lists:
            values = {name: _without_padding(value) for name, value in values.items()}
        for name, texts in zip(inputs, row.texts, strict=True):
            if inputs[name] > 1 and "probabilities" in values:
                values["probabilities"] = values["probabilities"][: _num_choices(texts)]
        yield json.dumps(values, ensure_ascii=False)


def _num_choices(texts: Sequence[str]) -> int:
    """The place behind the last choice; an empty string is none."""
    return max(place for place, text in enumerate(texts, start=1) if text)


def _plain(value: Any) -> Any:
    """Numbers, strings and lists of them."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray):
        return [_plain(part) for part in value] if value.dtype == object or value.ndim > 1 else _numbers(value)
    return _numbers(np.asarray(value)[np.newaxis])[0]


def _numbers(array: np.ndarray) -> list[Any]:
    """A row of numbers; JSON has no word for infinity and NaN, so these become null."""
    if array.dtype.kind != "f":
        return array.tolist()
    numbers = (float(str(number)) for number in array)  # the shortest digits that give the same float32
    return [number if math.isfinite(number) else None for number in numbers]


def _without_padding(value: Any) -> Any:
    """A list without the padding at its end, and so its parts."""
    if not isinstance(value, list):
        return value
    parts = [_without_padding(part) for part in value]
    while parts and (parts[-1] == "" or parts[-1] == [] or (parts[-1] == _NO_NUMBER)):
        parts.pop()
    return parts
