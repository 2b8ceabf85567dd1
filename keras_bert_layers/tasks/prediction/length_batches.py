"""Runs a model over many rows of ids, those of similar length together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal.types import Outputs, Tensor
from keras_bert_layers.config import COLUMNS, IDS
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import fitting_width
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.feeding.columns import stacked
from keras_bert_layers.tasks.feeding.global_batches import num_parts


class Progress:
    """Shows Keras's progress bar over rows, and calls Keras callbacks at every step.

    Args:
        model: the model that the callbacks see.
        num_rows: the number of rows, or None if it is unknown.
        verbose: as in `keras.Model.predict`: 0 shows nothing, 1 and "auto" a bar, 2 one line at the end.
        callbacks: Keras callbacks, or None.
    """

    def __init__(
        self,
        model: keras.Model,
        *,
        num_rows: int | None,
        verbose: str | int,
        callbacks: Sequence[keras.callbacks.Callback],
    ):
        self._bar = None
        if verbose != 0:
            self._bar = keras.utils.Progbar(num_rows, verbose=1 if verbose == "auto" else verbose, unit_name="row")
        is_list = isinstance(callbacks, keras.callbacks.CallbackList)
        options = {"model": model, "verbose": verbose, "epochs": 1, "steps": None}
        self._callbacks: Any = callbacks if is_list else keras.callbacks.CallbackList(callbacks, **options)
        self._num_steps = 0
        self._rows_done = 0.0
        self._block_size = 0

    def begin(self) -> None:
        """Called before the first step."""
        self._callbacks.on_predict_begin()

    def begin_block(self, num_rows: int) -> None:
        """Called before the steps of a block of `num_rows` rows."""
        self._rows_done = round(self._rows_done)
        self._block_size = num_rows

    def begin_step(self) -> None:
        """Called before each step."""
        self._callbacks.on_predict_batch_begin(self._num_steps)

    def end_step(self, outputs: Tensor, share: float) -> None:
        """Called after each step with its outputs, and the share of its block that it computed."""
        self._callbacks.on_predict_batch_end(self._num_steps, {"outputs": outputs})
        self._num_steps += 1
        self._rows_done += share * self._block_size
        rows_done = round(self._rows_done)
        if self._bar is not None and rows_done != self._bar.target:  # the last line is `end`'s
            self._bar.update(rows_done, finalize=False)

    def end(self) -> None:
        """Called after the last step."""
        if self._bar is not None:
            self._bar.update(round(self._rows_done), finalize=True)
        self._callbacks.on_predict_end()


def with_progress(rows: Iterable[Any], total: int, verbose: str | int) -> Iterator[Any]:
    """The same rows, with the progress bar of `predict` over them; without one under `verbose=0`."""
    if verbose == 0:
        yield from rows
        return
    bar = keras.utils.Progbar(total, verbose=1 if verbose == "auto" else verbose, unit_name="row")
    for row in rows:
        bar.add(1)
        yield row


# The default number of tokens per step, padding included. With fewer, the fixed cost of a step dominates; with more,
# what a block computes no longer fits the processor's cache, and each large tensor gets new memory from the system. An
# accelerator needs more at once.
TOKENS_ON_CPU = 2048
# JAX computes rows in powers of 2: fewer tokens leave less padding. Sentences take 0.9 of the time.
TOKENS_ON_CPU_IN_JAX = 1024
TOKENS_ON_ACCELERATOR = 65536
# Where padding is computed and shapes cost nothing: what starting a step costs, in tokens of all-MiniLM-L6-v2 on torch.
_STEP = 64


def plan(
    lengths: np.ndarray,
    *,
    width: Callable[[int], int],
    max_rows: int | None,
    max_tokens: int | None,
    even: bool = False,
) -> Iterator[np.ndarray]:
    """Cuts rows into batches, from the longest row to the shortest, so that a lack of memory shows at once.

    Args:
        lengths: int `(rows,)`, the tokens of each row.
        width: maps the length of a batch's longest row to the width that all its rows are padded to.
        max_rows: the most rows per batch, or None.
        max_tokens: the most tokens per batch, padding included, or None; a longer row is a batch on its own.
        even: whether batches have little padding, and therefore fewer rows.

    Yields:
        The indices of a batch's rows, int `(batch,)`.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    for end in _even_ends(lengths[order]) if even else [len(order)]:
        while start < end:
            size = len(order) if max_rows is None else max_rows
            if max_tokens is not None:
                size = min(size, max(1, max_tokens // width(int(lengths[order[start]]))))
            rows = order[start : min(start + size, end)]
            yield rows
            start += len(rows)


def _even_ends(lengths: np.ndarray) -> list[int]:
    """Where batches of sorted rows, the longest first, end so that their padded tokens and steps cost least in all."""
    ends = np.flatnonzero(np.diff(lengths, append=-1)) + 1  # of the rows of equal length
    starts, costs, cuts = np.array([0, *ends[:-1]]), np.zeros(len(ends) + 1), []
    for i, end in enumerate(ends):  # the last batch begins with the rows of one of the lengths up to this one
        tried = costs[: i + 1] + _STEP + (end - starts[: i + 1]) * lengths[starts[: i + 1]]
        cuts.append(int(np.argmin(tried)))
        costs[i + 1] = tried[cuts[-1]]
    found, i = [], len(ends)
    while i > 0:
        found.append(int(ends[i - 1]))
        i = cuts[i - 1]
    return found[::-1]


class LengthBatches:
    """Runs models over blocks of rows in batches of similar length, and puts the outputs back in order.

    Args:
        max_rows: the most rows per step, or None.
        max_tokens: the most tokens per step, padding included. None is a number that suits the device if `max_rows` is
            None too, and no limit otherwise.
        few_shapes: whether the model is compiled for every shape; batches are then padded to a power of 2 rows, so
            that there are few shapes.
        progress: reports every step.
    """

    def __init__(self, *, max_rows: int | None, max_tokens: int | None, few_shapes: bool, progress: Progress):
        is_even = False
        if max_rows is None and max_tokens is None:
            max_tokens = default_max_tokens()
            is_even = keras.backend.backend() == "torch" and max_tokens == TOKENS_ON_CPU
        self._bounds: dict[str, Any] = {"max_rows": max_rows, "max_tokens": max_tokens, "even": is_even}
        self._few_shapes = few_shapes
        self._progress = progress

    def run(
        self,
        step: Callable[[dict[str, np.ndarray]], Any],
        ids: dict[str, Any],
        preprocessor: TextLayer,
        *,
        finish: Callable[[dict[str, np.ndarray]], dict[str, Any]] | None = None,
        fill: float = 0,
        share: float = 1.0,
        keep: Callable[[np.ndarray], np.ndarray] = np.asarray,
    ) -> Any:
        """The model's outputs for all rows, in their order.

        Args:
            step: maps the inputs of a batch to the model's outputs, rows first.
            ids: the three arrays `(rows, sequence)` of a block, and perhaps columns `(rows, features)` beside them.
            preprocessor: made the ids; its `padding` applies to the batches.
            finish: turns the ids of a batch into the model's inputs, where these differ.
            fill: pads outputs that are narrower than those of the widest batch.
            share: this call's share of the work on the block, for the progress.
            keep: what is kept of the outputs of each step.
        """
        beside = {name: np.asarray(ids[name]) for name in ids if name == COLUMNS}
        ids = {name: np.asarray(ids[name]) for name in IDS}
        lengths = ids["padding_mask"].sum(axis=1)

        def width(longest: int) -> int:
            return fitting_width(longest, padding=preprocessor.padding, max_length=preprocessor.max_length)

        chosen, found = [], []
        for rows in plan(lengths, width=width, **self._bounds):
            self._progress.begin_step()
            needed = width(int(lengths[rows[0]]))
            batch = {name: values[self._padded(rows), :needed] for name, values in ids.items()}
            batch |= {name: values[self._padded(rows)] for name, values in beside.items()}
            outputs = step(batch if finish is None else finish(batch))
            found.append(keras.tree.map_structure(keep, _fetched(outputs, len(rows))))
            chosen.append(rows)
            self._progress.end_step(found[-1], share * len(rows) / len(lengths))
        position = np.argsort(np.concatenate(chosen))
        return keras.tree.map_structure(lambda *parts: stacked(parts, fill)[position], *found)

    def _padded(self, rows: np.ndarray) -> np.ndarray:
        """The rows; where shapes must be few, the last one is repeated up to a power of 2 that devices can divide."""
        return padded_rows(rows, self._bounds["max_rows"]) if self._few_shapes else rows


def padded_rows(rows: np.ndarray, max_rows: int | None = None) -> np.ndarray:
    """Rows, the last one repeated up to a power of 2, of at most `max_rows`, that devices can divide."""
    size = 1 << (len(rows) - 1).bit_length()
    size = max(len(rows), min(size, max_rows or size))
    size += -size % num_parts()
    return np.concatenate([rows, np.repeat(rows[-1:], size - len(rows))])


def default_max_tokens() -> int:
    """The number of tokens per step that suits the device that Keras computes on."""
    if keras.backend.backend() == "torch":
        import torch

        has_accelerator = torch.cuda.is_available()
    else:
        has_accelerator = any(not name.startswith("cpu") for name in keras.distribution.list_devices())
    on_cpu = TOKENS_ON_CPU_IN_JAX if keras.backend.backend() == "jax" else TOKENS_ON_CPU
    return TOKENS_ON_ACCELERATOR if has_accelerator else on_cpu


def _fetched(outputs: Outputs, num_rows: int) -> Any:
    """Outputs as NumPy arrays, without the rows that only pad a batch."""
    return keras.tree.map_structure(lambda values: keras.ops.convert_to_numpy(values)[:num_rows], outputs)
