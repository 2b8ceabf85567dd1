"""`IdArrays`: token ids that a user made, in arrays."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import keras
import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Labels, Rows
from keras_bert_layers.tasks.feeding.columns import as_tensor, split_rows
from keras_bert_layers.tasks.feeding.epochs import Epochs, batches_of_rows
from keras_bert_layers.tasks.feeding.global_batches import distribution
from keras_bert_layers.tasks.feeding.kind_of_data import BatchMaker, Parts


@final
class IdArrays:
    """Batches of arrays of ids and labels, which `fit` shuffles with TensorFlow, in an order that can be repeated.

    It does for ids what `Batches` does for text.

    Args:
        owner: the task's class, for errors.
    """

    def __init__(self, owner: str):
        self.owner = owner

    def __call__(
        self,
        x: Rows,
        y: Labels | None = None,
        sample_weight: Labels | None = None,
        *,
        batch_size: int | None = None,
        epochs: Epochs | None = None,
    ) -> tf.data.Dataset:
        """A dataset of batches; arguments as in `Batches`."""
        return self.maker(x, y, sample_weight, batch_size=batch_size)(epochs).prefetch(tf.data.AUTOTUNE)

    def maker(self, x: Rows, y: Labels | None, sample_weight: Labels | None, *, batch_size: int | None) -> BatchMaker:
        """What makes a dataset of batches."""
        rows = tf.nest.map_structure(as_tensor, _in_floatx((x, y, sample_weight)))
        return lambda epochs: batches_of_rows(rows, batch_size=batch_size or 32, lengths=_no_lengths, epochs=epochs)

    def split(self, x: Rows, y: Labels, sample_weight: Labels, share: float) -> tuple[Parts, Parts]:
        """The first rows, and the `share` of rows at the end."""
        return split_rows(self.owner, share, *_in_floatx((x, y, sample_weight)))

    def validation(self, data: Rows, batch_size: int | None) -> Any:
        """A dataset of what is in arrays; anything else unchanged."""
        rows = keras.utils.unpack_x_y_sample_weight(data)
        return self(*rows, batch_size=batch_size) if is_id_arrays(rows) else data

    def check_labels(self, x: Rows, y: Labels) -> None:
        """Left to Keras."""

    def fitting(self, x: Rows) -> AbstractContextManager[None]:
        """Nothing is decided by ids."""
        return nullcontext()


def is_id_arrays(rows: Iterable[Any]) -> bool:
    """Whether all are arrays with equally many rows, on TensorFlow or under a distribution; None is left out."""
    if keras.backend.backend() != "tensorflow" and distribution() is None:
        return False
    arrays = [array for array in keras.tree.flatten(tuple(rows)) if array is not None]
    return all(isinstance(array, np.ndarray | tf.Tensor) for array in arrays) and len(set(map(len, arrays))) == 1


def _no_lengths(*_: Any) -> tf.Tensor:
    raise NotImplementedError("Ids are not sorted by length.")


def _in_floatx(rows: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """The rows with floats in Keras's precision."""

    def cast(array: Any) -> Any:
        is_float = isinstance(array, np.ndarray) and np.issubdtype(array.dtype, np.floating)
        return array.astype(keras.config.floatx()) if is_float else array

    return keras.tree.map_structure(cast, rows)
