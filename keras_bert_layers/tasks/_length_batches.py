"""Many rows of ids through a model, those of about one length together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.bert_preprocessor import fitting_width
from keras_bert_layers.tasks._progress import Progress

IDS = ("token_ids", "segment_ids", "padding_mask")
# Tokens a step, padding included, where nobody says so. Less, and a step costs more than its tokens; more, and what a
# block computes no longer stays in a processor's cache. An accelerator wants more at once.
TOKENS_ON_CPU = 4096
TOKENS_ON_ACCELERATOR = 65536


def plan(
    lengths: np.ndarray, *, width: Callable[[int], int], max_rows: int | None, max_tokens: int | None
) -> Iterator[np.ndarray]:
    """Cuts rows into batches, from the longest row to the shortest.

    The longest come first, so that what memory cannot hold is known at once.

    Args:
        lengths: int `(rows,)`, the tokens of each row.
        width: from the length of a batch's longest row to the number of places that each of its rows gets.
        max_rows: the most rows a batch, or None.
        max_tokens: the most places a batch, padding included, or None; a row that is longer is a batch by itself.

    Yields:
        The places of a batch's rows, int `(batch,)`.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = len(order) if max_rows is None else max_rows
        if max_tokens is not None:
            size = min(size, max(1, max_tokens // width(int(lengths[order[start]]))))
        yield order[start : start + size]
        start += size


class LengthBatches:
    """Runs models over blocks of rows in batches of about equal lengths, and puts what they give back in order.

    Args:
        max_rows: the most rows a step, or None.
        max_tokens: the most tokens a step, padding included; None is a number that suits the device where `max_rows`
            is None too, and no bound where it is given.
        few_shapes: whether the model is compiled for every shape; rows are then filled up to a power of 2, so that
            there are few.
        progress: what is told of every step.
    """

    def __init__(self, *, max_rows: int | None, max_tokens: int | None, few_shapes: bool, progress: Progress):
        if max_rows is None and max_tokens is None:
            max_tokens = default_max_tokens()
        self._bounds = {"max_rows": max_rows, "max_tokens": max_tokens}
        self._few_shapes = few_shapes
        self._progress = progress

    def run(
        self,
        step: Callable[[dict[str, np.ndarray]], Any],
        ids: dict[str, Any],
        preprocessor: Any,
        *,
        finish: Callable[[dict[str, np.ndarray]], dict[str, Any]] | None = None,
        fill: float = 0,
        share: float = 1.0,
    ) -> Any:
        """The model's outputs for all rows, in their order.

        Args:
            step: from the inputs of a batch to the model's outputs, rows first.
            ids: the three arrays `(rows, sequence)` of a block.
            preprocessor: what made them; its `padding` holds for the batches.
            finish: makes the model's inputs of the ids of a batch, where these are not the same.
            fill: what stands where a row's outputs are narrower than those of the widest batch.
            share: the share of the block's work that this is, for the progress.
        """
        ids = {name: np.asarray(ids[name]) for name in IDS}
        lengths = ids["padding_mask"].sum(axis=1)

        def width(longest: int) -> int:
            return fitting_width(longest, padding=preprocessor.padding, max_length=preprocessor.max_length)

        chosen, found = [], []
        for rows in plan(lengths, width=width, **self._bounds):
            self._progress.begin_step()
            needed = width(int(lengths[rows[0]]))
            batch = {name: values[self._filled(rows), :needed] for name, values in ids.items()}
            outputs = step(batch if finish is None else finish(batch))
            found.append(_fetched(outputs, len(rows)))
            chosen.append(rows)
            self._progress.end_step(found[-1], share * len(rows) / len(lengths))
        place = np.argsort(np.concatenate(chosen))
        return keras.tree.map_structure(lambda *parts: stacked(parts, fill)[place], *found)

    def _filled(self, rows: np.ndarray) -> np.ndarray:
        """The rows, and where shapes must be few the last one again and again, up to a power of 2."""
        if not self._few_shapes:
            return rows
        size = 1 << (len(rows) - 1).bit_length()
        size = max(len(rows), min(size, self._bounds["max_rows"] or size))
        return np.concatenate([rows, np.repeat(rows[-1:], size - len(rows))])


def on_host(function: Callable[[Any], Any], texts: Any) -> Any:
    """What a function of strings gives; on an accelerator the integers between its ops would travel there and back."""
    with tf.device("CPU:0"):
        return function(texts)


def default_max_tokens() -> int:
    """Tokens a step that suit the device that Keras computes on."""
    if keras.backend.backend() == "torch":
        import torch

        has_accelerator = torch.cuda.is_available()
    else:
        has_accelerator = any(not name.startswith("cpu") for name in keras.distribution.list_devices())
    return TOKENS_ON_ACCELERATOR if has_accelerator else TOKENS_ON_CPU


def _fetched(outputs: Any, num_rows: int) -> Any:
    """Outputs as NumPy arrays, without the rows that only fill a shape."""
    return keras.tree.map_structure(lambda values: keras.ops.convert_to_numpy(values)[:num_rows], outputs)


def stacked(parts: Sequence[np.ndarray], fill: float | bytes) -> np.ndarray:
    """Arrays one below the other, with `fill` where one is narrower than another on any axis."""
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) == 1:
        return np.concatenate(parts) if len(parts) > 1 else parts[0]
    shape = np.max(list(shapes), axis=0)
    found = np.full((sum(map(len, parts)), *shape), fill, parts[0].dtype)
    start = 0
    for part in parts:
        found[(slice(start, start + len(part)), *map(slice, part.shape[1:]))] = part
        start += len(part)
    return found
