"""`traced_once`: graphs that several signatures of one SavedModel share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from keras_bert_layers._internal.lazy import tf

_made: ContextVar[dict[Any, Any] | None] = ContextVar("made", default=None)


@contextmanager
def shared_graphs() -> Iterator[None]:
    """Context in which each function that `traced_once` calls becomes one graph, which all callers share."""
    token = _made.set({})
    try:
        yield
    finally:
        _made.reset(token)


def traced_once(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Returns `function(*arguments, **options)`; inside `shared_graphs`, in graph, as a call of a graph traced once.

    TensorFlow inlines such calls before it runs a graph, so it still fuses operations across them.

    Args:
        function: a layer, or a method; equal functions share a graph.
        *arguments: tensors, or dictionaries and tuples of tensors; one graph serves all sizes.
        **options: arguments that are not tensors.

    Returns:
        What the function returns.
    """
    made = _made.get()
    if made is None or tf.executing_eagerly():
        return function(*arguments, **options)
    specs = tf.nest.map_structure(_of_any_size, arguments)
    key = function, tuple(sorted(options.items())), tuple(tf.nest.flatten(specs)), str(specs)
    if key not in made:
        made[key] = tf.function(_named(function, options), input_signature=specs, autograph=False)
    return made[key](*arguments)


def _named(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """The function with its options applied, under a name that is valid for a graph."""

    def named(*inputs: Any) -> Any:
        return function(*inputs, **options)

    named.__name__ = getattr(function, "__name__", type(function).__name__)
    return named


def _of_any_size(tensor: tf.Tensor) -> tf.TensorSpec:
    return tf.TensorSpec([None] * tensor.shape.rank, tensor.dtype)
