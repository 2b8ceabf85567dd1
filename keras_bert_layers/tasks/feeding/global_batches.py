"""Batches under `keras.distribution`: each process gets its part of a batch, padded to as many rows as devices take."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Rows, Tensor

#: An input whose shape is `(devices, padding rows)`: how many rows at the end of the batch only pad it.
PADDING_ROWS = "padding_rows"
_are_cut = contextvars.ContextVar("are_cut", default=False)


def distribution() -> Any:
    """The distribution that `keras.distribution.set_distribution` has set, on JAX; None without one."""
    return keras.distribution.distribution() if keras.backend.backend() == "jax" else None


def num_parts() -> int:
    """How many equal parts devices cut a batch into."""
    return 1 if distribution() is None else distribution().num_model_replicas


def agreed(number: int) -> int:
    """A number below 2**31 that is the same in all processes: that of the first one."""
    if distribution() is None or distribution().num_processes == 1:
        return number
    from jax.experimental import multihost_utils

    return int(multihost_utils.broadcast_one_to_all(np.int32(number)))


@contextlib.contextmanager
def parts_are_cut() -> Iterator[None]:
    """The context in which Keras takes batches for the part of this process, and does not cut them once more.

    Batches that are made in it may be cut before there are ids of them; see `are_cut_early`.
    """
    spread = distribution()
    before = getattr(spread, "auto_shard_dataset", False)
    token = _are_cut.set(spread is not None)
    try:
        if before:
            spread.auto_shard_dataset = False
        yield
    finally:
        _are_cut.reset(token)
        if before:
            spread.auto_shard_dataset = True


def part_of_process(batches: tf.data.Dataset) -> Any:
    """Batches `(x, y, sample_weight)` as the part that this process gives to its devices; see `cut_and_encoded`.

    Batches that were cut before have the input `PADDING_ROWS` and stay unchanged.
    """
    if distribution() is None or PADDING_ROWS in batches.element_spec[0]:
        return batches
    return batches.map(
        lambda *batch: cut_and_encoded(lambda *parts: parts, *batch), num_parallel_calls=tf.data.AUTOTUNE
    )


def are_cut_early() -> bool:
    """Whether a process cuts its rows out of a batch before it encodes them, inside `parts_are_cut`.

    It may where the ids of a row, and their number, depend on that row alone.
    """
    return _are_cut.get()


def cut_and_encoded(encode: Callable[..., tuple[Any, ...]], *parts: Any) -> tuple[Any, ...]:
    """Takes the rows of this process out of a whole batch, and encodes them; in graph.

    Devices need equal numbers of rows, so the batch is padded with copies of its first rows. `encode` returns the
    inputs, a dictionary, first. They get the input `PADDING_ROWS`, by which `on_real_rows` leaves the copies out of
    losses and metrics.
    """
    spread = distribution()
    num_devices = spread.num_model_replicas
    num_shards = min(num_devices, spread.num_processes)
    num_rows = tf.reduce_min([tf.shape(leaf)[0] for leaf in tf.nest.flatten(parts) if leaf is not None])
    padding = -num_rows % num_devices
    bounds = tf.range(num_shards + 1) * ((num_rows + padding) // num_shards)

    def part(leaf: Tensor) -> Any:
        if leaf is None:
            return None
        each = tf.shape(leaf)[0] // num_rows  # pairs have several rows of ids
        begin, end = each * bounds[spread.data_shard_id], each * bounds[spread.data_shard_id + 1]
        return tf.gather(leaf, tf.range(begin, end) % tf.shape(leaf)[0])

    x, *others = encode(*tf.nest.map_structure(part, parts))
    return {**x, PADDING_ROWS: tf.zeros([num_devices // num_shards, padding], tf.int32)}, *others


def predict_on_batch(model: keras.Model, x: Rows) -> Any:
    """Keras's `predict_on_batch` with the rows divided among all devices, where they can be; all rows of the outputs.

    Every process calls it with the same whole batch, and gets the same outputs.
    """
    spread = distribution()
    if spread is None or any(len(leaf) % num_parts() for leaf in keras.tree.flatten(x)):
        return keras.Model.predict_on_batch(model, x)
    import jax
    from jax.experimental import multihost_utils

    model.make_predict_function()
    function = model.predict_function

    def divided(leaf: Tensor) -> Any:
        layout = spread.get_data_layout(leaf.shape).backend_layout
        return jax.make_array_from_process_local_data(layout, np.asarray(leaf), leaf.shape)

    def gathered(*arguments: Any) -> tuple[Any, Any]:
        outputs, state = function(*arguments)
        return multihost_utils.process_allgather(outputs, tiled=True), state

    model.predict_function = gathered
    try:
        return keras.Model.predict_on_batch(model, keras.tree.map_structure(divided, x))
    finally:
        model.predict_function = function


def predict_ids(model: keras.Model, x: Rows, batch_size: int | None, **options: Any) -> Any:
    """Keras's `predict`; of several processes, which Keras gives no arrays, batch after batch."""
    spread = distribution()
    arrays = keras.tree.flatten(x)
    if spread is None or spread.num_processes == 1 or not all(hasattr(array, "shape") for array in arrays):
        return keras.Model.predict(model, x, batch_size=batch_size, **options)
    size = batch_size or 32

    def block(start: int) -> Any:
        return predict_on_batch(model, keras.tree.map_structure(lambda array: array[start : start + size], x))

    blocks = [block(start) for start in range(0, len(arrays[0]), size)[: options.get("steps")]]
    return keras.tree.map_structure(lambda *parts: np.concatenate(parts), *blocks)


def model_inputs(x: Rows) -> Any:
    """The inputs of a batch without `PADDING_ROWS`."""
    return {name: value for name, value in x.items() if name != PADDING_ROWS} if isinstance(x, dict) else x


def on_real_rows(method: Callable[..., Any]) -> Callable[..., Any]:
    """`compute_loss` or `compute_metrics` of a task, without the rows that only pad a batch; a decorator."""

    @functools.wraps(method)
    def computed(
        task: keras.Model,
        x: Rows | None = None,
        y: Tensor | None = None,
        y_pred: Tensor | None = None,
        sample_weight: Tensor | None = None,
        **options: Any,
    ) -> Any:
        if isinstance(x, dict) and PADDING_ROWS in x:
            num_padding, x = x[PADDING_ROWS].shape[1], model_inputs(x)
            num_rows = min(leaf.shape[0] for leaf in keras.tree.flatten((x, y, sample_weight)) if leaf is not None)

            def real(leaf: Tensor) -> Any:
                return leaf[: leaf.shape[0] // num_rows * (num_rows - num_padding)]

            if num_padding:
                x, y, y_pred, sample_weight = keras.tree.map_structure(
                    lambda leaf: None if leaf is None else real(leaf), (x, y, y_pred, sample_weight)
                )
            if method.__name__ == "compute_loss":
                task._loss_tracker.num_rows = keras.tree.flatten(x)[0].shape[0]
        return method(task, x, y, y_pred, sample_weight, **options)

    return computed


class MeanOfRows(keras.metrics.Mean):
    """Keras's mean of the losses of batches, in which a batch weighs as many rows as `on_real_rows` leaves in it."""

    num_rows: int | None = None  # of the step that is traced, from its loss to its mean

    def update_state(self, values: Tensor, sample_weight: Tensor | None = None) -> None:
        """Adds the loss of a batch."""
        num_rows, self.num_rows = self.num_rows, None
        super().update_state(values, sample_weight if num_rows is None else num_rows)
