"""`freed_with`: custom gradients that do not outlive their layer."""

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import keras


@contextlib.contextmanager
def freed_with(owner: Any) -> Iterator[None]:
    """Inside, the custom gradients that TensorFlow traces are kept as long as an object lives, and not for ever.

    TensorFlow registers a function for each trace of `tf.custom_gradient`. The function holds the graph, and the graph
    holds all weights of the model.

    Args:
        owner: the layer or the model that computes with them. The functions must not refer to it.
    """
    if keras.backend.backend() != "tensorflow":
        yield
        return
    from tensorflow.python.framework.ops import gradient_registry

    registered = gradient_registry._registry
    before = set(registered)
    try:
        yield
    finally:
        for name in registered.keys() - before:
            weakref.finalize(owner, registered.pop, name, None).atexit = False
