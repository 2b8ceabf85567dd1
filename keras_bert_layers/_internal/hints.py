"""Errors for names that other libraries have, which tell this package's own."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


class _Elsewhere:
    """A method of other libraries' classes that is not here."""

    def __init__(self, cure: str):
        self._cure = cure

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        raise AttributeError(f"`{owner.__name__}` has no `{self._name}`. {self._cure}")


def elsewhere(cure: str) -> tuple[Any, Any]:
    """`from_preset` and `from_pretrained` of a class: both are an AttributeError that tells what to call instead."""
    return _Elsewhere(cure), _Elsewhere(cure)


def with_names_of_others(cls: Class) -> Class:
    """Makes a config's unknown arguments one error, with its own name for those of transformers; a decorator.

    The names are those of `config.json`, in `checkpoints.huggingface.config_keys`.
    """
    init = cls.__init__  # type: ignore[misc]
    known = list(inspect.signature(cls).parameters)

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **values: Any) -> None:
        unknown = [name for name in values if name not in known]
        if unknown:
            names = importlib.import_module("keras_bert_layers.checkpoints.huggingface.config_keys").FIELDS_BY_KEY
            hints = [f"{name} (here {names[name]!r})" if name in names else name for name in unknown]
            raise TypeError(
                f"`{cls.__name__}`: every argument must be one of {known}. Received: {', '.join(hints)}. "
                f"For the content of a config.json: `{cls.__name__}.from_huggingface(values)`."
            )
        init(self, *args, **values)

    cls.__init__ = checked  # type: ignore[misc]
    return cls
