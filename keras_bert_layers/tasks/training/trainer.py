"""What is done after an error in training: functions are traced anew, and batches tell their own errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def traced_anew_after_errors(method: Method) -> Method:
    """A method of a task whose training functions are made again after an error in it; a decorator.

    An error of a batch that a generator or a `PyDataset` gave is raised as it is; TensorFlow gives one of its own.

    TensorFlow takes the second call of a function whose first trace was interrupted for one that needs no variables.
    Keras keeps the function, so that every later `fit` would fail.
    """

    @functools.wraps(method)
    def guarded(task: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return method(task, *arguments, **options)
        except BaseException as error:
            task.train_function = task.test_function = None
            own, task.pipeline.stream_error = task.pipeline.stream_error, None
            if own is not None and error is not own:
                raise own from None
            raise

    return guarded  # type: ignore[return-value]
