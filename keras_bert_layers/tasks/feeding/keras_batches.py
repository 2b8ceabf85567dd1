"""Batches in the form in which Keras's own loops read them."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import Any, final

import keras
import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.feeding.columns import is_dataset, is_of_tensorflow


def for_keras(data: Any) -> Any:
    """A dataset as Keras's loops take it; anything else unchanged.

    When the iterator of a dataset ends that TensorFlow tunes as it runs, TensorFlow 2.21 often waits for the tuner to
    wake, and it sleeps twice as long each time: up to as long as the iterator has run, a minute at most. So it is not
    tuned, unless it says that it is.
    """
    if not is_dataset(data):
        return data
    if not is_of_tensorflow(data):
        return _in_numpy(data) if data.cardinality() == tf.data.UNKNOWN_CARDINALITY else KerasBatches(data)
    if data.options().autotune.enabled is not None:
        return data
    options = tf.data.Options()
    options.autotune.enabled = False
    return data.with_options(options)


@contextlib.contextmanager
def fed(*data: Any) -> Iterator[list[Any]]:
    """`for_keras` of each. Afterwards no thread reads ahead for Keras, which keeps batches that it was stopped in."""
    given = [for_keras(part) for part in data]
    try:
        yield given
    finally:
        for part, own in zip(given, data, strict=True):
            if part is not own and isinstance(part, KerasBatches | Generator):
                part.close()


@final
class KerasBatches(keras.utils.PyDataset):
    """The batches of a dataset in their order, where TensorFlow is not installed.

    Keras asks for them by number, one after the other, and begins with 0 again for another epoch.

    Args:
        batches: a dataset whose length is known, or that has no end.
    """

    def __init__(self, batches: Any):
        super().__init__()
        self._batches = batches
        self._iterator = _in_numpy(())

    @property
    def num_batches(self) -> int | None:
        """The number of batches of an epoch; None if there is no end."""
        length = int(self._batches.cardinality())
        return length if length >= 0 else None

    def __getitem__(self, index: int) -> Any:
        """The next batch in NumPy; the first one for the index 0."""
        if index == 0:
            self._iterator = _in_numpy(self._batches)
        return next(self._iterator)

    def close(self) -> None:
        """Ends the epoch, and what reads ahead for it."""
        self._iterator.close()


def _in_numpy(batches: Any) -> Generator[Any]:
    for batch in batches:
        yield keras.tree.map_structure(np.asarray, batch)
