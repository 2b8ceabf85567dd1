"""Calls of Python from a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal.lazy import tf


def call_on_host(function: Callable[..., Any], texts: tf.Tensor, dtypes: Sequence[Any]) -> list[tf.Tensor]:
    """Returns what a function of texts, a NumPy array of bytes `[B]`, returns: vectors of some dtypes.

    The function must be pure. TensorFlow keeps it as long as the process lives.
    """
    outputs = tf.numpy_function(function, [texts], dtypes, stateful=False)
    for output in outputs:
        output.set_shape([None])
    return outputs


def strings(texts: Sequence[bytes]) -> np.ndarray:
    """An array of bytes that TensorFlow reads as strings, also if there are none."""
    array = np.empty(len(texts), object)
    array[:] = texts
    return array
