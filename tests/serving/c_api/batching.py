"""Batching as TensorFlow Serving does it: requests are merged into one, and its answer is split again.

Follows `MergeInputTensors` and `SplitOutputTensors` of `tensorflow_serving/batching/batching_session.cc`, and
`AddPadding` of `batching_util.cc` beside it, at 2.19.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Tensors = Mapping[str, np.ndarray]


class BatchingError(ValueError):
    """The server refuses all requests of the batch; the text is its own."""


def merge(requests: Sequence[Tensors], *, pad_variable_length_inputs: bool = False) -> dict[str, np.ndarray]:
    """One request from several.

    Raises:
        BatchingError: inputs differ in other dimensions than the first, and are not to be padded.
    """
    merged = {}
    for name in requests[0]:
        values = [np.asarray(request[name]) for request in requests]
        if pad_variable_length_inputs:
            longest = np.max([value.shape[1:] for value in values], axis=0, initial=0).astype(int)
            values = [_padded(value, longest) for value in values]
        elif len({value.shape[1:] for value in values}) > 1:
            raise BatchingError(
                f"Tensors with name '{name}' from different tasks have different shapes and padding is turned off."
            )
        merged[name] = np.concatenate(values)
    return merged


def split(outputs: Tensors, sizes: Sequence[int]) -> list[dict[str, np.ndarray]]:
    """The answers to requests with the given numbers of rows.

    Raises:
        BatchingError: an output has not one row for each of the inputs.
    """
    for values in outputs.values():
        if values.ndim == 0:
            raise BatchingError("Batched output tensor has 0 dimensions")
        if len(values) != sum(sizes):
            raise BatchingError("Batched output tensor's 0th dimension does not equal the sum of the inputs'")
    places = np.cumsum(sizes)[:-1]
    parts = {name: np.split(values, places) for name, values in outputs.items()}
    return [{name: part[index] for name, part in parts.items()} for index in range(len(sizes))]


def _padded(values: np.ndarray, longest: np.ndarray) -> np.ndarray:
    """A tensor with its own first element behind every dimension but the first."""
    missing = [(0, 0), *((0, size - own) for own, size in zip(values.shape[1:], longest, strict=True))]
    return np.pad(values, missing, constant_values=values.flat[0])
