"""The order of rows before `RowOrder` made it itself, for trainings that were backed up then.

A resumed training reads the batches before its step and leaves them out. In another order, it would train on some rows
of the epoch twice and on others not at all, and end with other weights than without the interruption. So it goes on in
the order and with the masks that it began with, those of `tf.data.Dataset.shuffle` and `random`. `TrainingPlace` reads
from its file which order that is, and `Epochs` gets it with the seed. Nothing but TensorFlow repeats this order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from keras_bert_layers._internal.lazy import is_tensorflow, tf
from keras_bert_layers.tasks.feeding.columns import gather_rows

Make = Callable[[Any], Any]
_GROUPED_BATCHES = 50


def check() -> None:
    """ModuleNotFoundError where TensorFlow is not installed."""
    if not is_tensorflow():
        raise ModuleNotFoundError(
            "This training was backed up when TensorFlow put its rows in order. To resume it needs TensorFlow, which "
            "is not installed here. Resume it where TensorFlow is, or begin a new training from its weights.",
            name="tensorflow",
        )


def either(seed: tf.Tensor, *, make: Make, former: Make) -> tf.data.Dataset:
    """`make(seed)`, or `former(-1 - seed)` for a negative seed; decided when the dataset is iterated over."""
    if not is_tensorflow():
        return make(seed)  # for a negative seed, `check` has raised
    # Of the graph that is traced here: TensorFlow's global seed would be mixed into each seed that is given.
    tf.random.set_seed(1)
    is_former = seed < 0
    kept = make(seed).take(tf.where(is_former, tf.constant(0, tf.int64), -1))  # all, or none
    return kept.concatenate(former(-1 - seed).take(tf.where(is_former, tf.constant(-1, tf.int64), 0)))


def random_numbers(seed: tf.Tensor) -> tf.data.Dataset:
    """The seed of each batch's masks."""
    return tf.data.Dataset.random(seed)


def batches(
    rows: tf.data.Dataset, batch_size: int, *, lengths: Callable[..., Any] | None, buffer: int, seed: tf.Tensor
) -> tf.data.Dataset:
    """Shuffled batches.

    Args:
        rows: yields one row at a time.
        batch_size: rows per batch.
        lengths: maps the elements of a batch of rows to their lengths, by which the rows of 50 batches are sorted; None
            if they are not.
        buffer: how many rows are shuffled at a time.
        seed: an int64 scalar, from 0 on.
    """
    shuffle = partial(tf.data.Dataset.shuffle, seed=seed, reshuffle_each_iteration=False)
    rows = shuffle(rows, buffer)
    if lengths is None:
        return rows.batch(batch_size)

    def cut(*element: Any) -> tf.data.Dataset:
        order = tf.argsort(lengths(*element), direction="DESCENDING", stable=True)
        parts = element if isinstance(rows.element_spec, tuple) else element[0]
        starts = tf.data.Dataset.range(0, tf.size(order, tf.int64), batch_size)
        return starts.map(lambda start: gather_rows(parts, order[start : start + batch_size]))

    return shuffle(rows.batch(batch_size * _GROUPED_BATCHES).flat_map(cut), _GROUPED_BATCHES)
