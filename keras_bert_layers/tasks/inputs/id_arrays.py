"""Token ids that a user made, in arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.feeding.epochs import Epochs
from keras_bert_layers.tasks.feeding.global_batches import distribution
from keras_bert_layers.tasks.inputs.inputs import Inputs


class IdArrays(Inputs):
    """Arrays of ids and labels that `fit` shuffles with TensorFlow, in an order that can be repeated."""

    def check_labels(self, x: Any, y: Any) -> None:
        """Left to Keras."""

    def validation(self, data: Any, batch_size: int | None) -> Any:
        """A dataset of what is in arrays; anything else unchanged."""
        rows = keras.utils.unpack_x_y_sample_weight(data)
        return self.batches(*rows, batch_size=batch_size) if is_id_arrays(rows) else data

    def checked(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """The arrays, with floats in Keras's precision."""
        return keras.tree.map_structure(_in_floatx, (x, y, sample_weight))

    def encoded(self, rows: tf.data.Dataset, epochs: Epochs | None) -> tf.data.Dataset:
        """The batches unchanged."""
        return rows


def is_id_arrays(rows: Iterable[Any]) -> bool:
    """Whether all are arrays with equally many rows, on TensorFlow or under a distribution; None is left out."""
    if keras.backend.backend() != "tensorflow" and distribution() is None:
        return False
    arrays = [array for array in keras.tree.flatten(tuple(rows)) if array is not None]
    return all(isinstance(array, np.ndarray | tf.Tensor) for array in arrays) and len(set(map(len, arrays))) == 1


def _in_floatx(array: Any) -> Any:
    is_float = isinstance(array, np.ndarray) and np.issubdtype(array.dtype, np.floating)
    return array.astype(keras.config.floatx()) if is_float else array
