"""TensorFlow's functions that call others: loops, conditions and graphs, all run at once."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_bert_layers._internal.numpy_tensorflow.ragged import RaggedTensor
from keras_bert_layers._internal.numpy_tensorflow.tensors import Tensor, convert_to_tensor, to_array
from keras_bert_layers._internal.numpy_tensorflow.types import Kind, Value, invalid


def function(func: Callable[..., Any] | None = None, input_signature: Value = None, **options: Any) -> Any:
    """The function itself; with a signature, its arguments become tensors.

    Args:
        func: a function; None for a decorator.
        input_signature: a `TensorSpec` for each argument.
        **options: not used.
    """
    if func is None:
        return functools.partial(function, input_signature=input_signature, **options)
    if input_signature is None:
        return func

    def call(*values: Value) -> Any:
        pairs = zip(values, input_signature, strict=True)
        return func(*(convert_to_tensor(v, getattr(spec, "dtype", None)) for v, spec in pairs))

    return call


def cond(pred: Value, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """What one of two functions returns."""
    return true_fn() if pred else false_fn()


def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Value, **options: Any) -> Any:
    """The values that a loop ends with."""
    state = tuple(map(_as_tensors, loop_vars))
    while cond(*state):
        state = body(*state)
        state = tuple(map(_as_tensors, state if isinstance(state, tuple | list) else (state,)))
    return type(loop_vars)(state) if type(loop_vars) in (list, tuple) else type(loop_vars)(*state)


def _as_tensors(value: Value) -> Any:
    return Tensor(to_array(value)) if isinstance(value, int | float | np.ndarray | np.generic) else value


def numpy_function(func: Callable[..., Any], inp: Value, Tout: Kind, stateful: bool = True) -> Any:  # noqa: N803
    """What a function of arrays returns, as tensors."""
    found = func(*(to_array(value)[()] for value in inp))
    if isinstance(Tout, list | tuple):
        return [convert_to_tensor(value, dtype) for value, dtype in zip(found, Tout, strict=True)]
    return convert_to_tensor(found, Tout)


def null_context(*_: Value) -> contextlib.AbstractContextManager[None]:
    """A context that does nothing."""
    return contextlib.nullcontext()


def check(condition: Value, data: Value, summarize: int = 3) -> None:
    """Raises InvalidArgumentError with data unless a condition holds."""
    if not to_array(condition).all():
        parts = [part.numpy() if hasattr(part, "numpy") else part for part in data]
        texts = (part.decode(errors="replace") if isinstance(part, bytes) else str(part) for part in parts)
        raise invalid(
            "Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: " + "\n".join(texts)
        )


def check_less_equal(x: Value, y: Value, message: Value = None, summarize: Value = None) -> None:
    """Raises InvalidArgumentError with a message unless all of `x` are at most `y`."""
    if not (to_array(x) <= to_array(y)).all():
        raise invalid(f"{message}\nCondition x <= y did not hold.\n{x}\n{y}")


def is_tensor(x: Value) -> bool:
    """Whether a value is a tensor, whole or ragged."""
    return isinstance(x, Tensor | RaggedTensor)
