"""Attributes of a task that its traced functions hold as constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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

    def __get__(self, task: Any, owner: type | None = None) -> Any:
        return self if task is None else getattr(self._holder_of(task), self._stored)

    def __set__(self, task: Any, value: Any) -> None:
        if self._check is not None:
            value = self._check(type(task).__name__, self._name, value)
        setattr(self._holder_of(task), self._stored, value)
        task.forget_traces()

    def _holder_of(self, task: Any) -> Any:
        return task if self._holder is None else getattr(task, self._holder)
