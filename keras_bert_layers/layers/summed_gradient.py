"""`with_summed_gradient`: a matrix of which rows are selected, with one gradient for all of them."""

from typing import Any

import keras

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor


def with_summed_gradient(matrix: Tensor) -> Any:
    """A matrix `(rows, width)` as a tensor whose gradient has its shape, on every backend.

    On TensorFlow, the gradient of selected rows lists a row as often as it was selected. Keras's optimizers compute
    with these parts one by one where they must use their sum: Adam squares each of them. A `Reshape` changes only the
    gradient, which it adds up. `tf.custom_gradient` would do the same, but TensorFlow keeps its function, and
    with it the graph and all weights of the model, for ever.
    """
    if keras.backend.backend() != "tensorflow":
        return matrix
    return tf.reshape(tf.convert_to_tensor(matrix), matrix.shape)
