"""Attributes of tasks that may be changed at any time: a change drops the traced functions."""

from collections.abc import Callable
from typing import Any

from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.graphs.heads import check_sizes


class Setting:
    """An attribute of a task that may be changed at any time; a change drops the task's traced functions.

    Args:
        check: `check(owner, name, value)` returns the value to store, or raises; None takes any value.
        holder: the attribute of the task that holds the value; None for the task itself.
        doc: the attribute's docstring.
    """

    def __init__(
        self, check: Callable[[str, str, Any], Any] | None = None, *, holder: str | None = None, doc: str = ""
    ):
        self._check = check
        self._holder = holder
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._stored = f"_{name}" if self._holder is None else name

    def __get__(self, task: TextTask, owner: type | None = None) -> Any:
        return self if task is None else getattr(self._holder_of(task), self._stored)

    def __set__(self, task: TextTask, value: object) -> None:
        if self._check is not None:
            value = self._check(type(task).__name__, self._name, value)
        setattr(self._holder_of(task), self._stored, value)
        task.forget_traces()

    def _holder_of(self, task: TextTask) -> Any:
        return task if self._holder is None else getattr(task, self._holder)


def replace_preprocessor(task: TextTask, preprocessor: TextLayer | None) -> None:
    """Gives a task another preprocessor, or None; ValueError if the backbone is too small for it."""
    if preprocessor is not task.pipeline.preprocessor:
        if preprocessor is not None:
            check_sizes(type(task).__name__, task.backbone.config, preprocessor)
        task.pipeline.preprocessor = preprocessor
        task.forget_traces()
