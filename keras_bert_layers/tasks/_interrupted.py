"""Training functions that were left half traced, by Ctrl-C for example."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def traced_anew_after_errors(method: Method) -> Method:
    """A method of a task whose training functions are made again after an error in it; a decorator.

    TensorFlow takes the second call of a function whose first trace was interrupted for one that needs no variables.
    Keras keeps the function, so that every later `fit` would fail.
    """

    @functools.wraps(method)
    def guarded(task: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return method(task, *arguments, **options)
        except BaseException:
            task.train_function = task.test_function = None
            raise

    return guarded  # type: ignore[return-value]
