"""Errors for names of other libraries, which state the name in this package, and for a library that is missing."""

import difflib
import functools
import importlib
import inspect
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from keras_bert_layers._internal.other_libraries import ARGUMENTS, FIELDS, WAYS

Class = TypeVar("Class", bound=type)


class _Unavailable:
    """A method of other libraries' classes that this package does not have."""

    def __init__(self, cure: str):
        self._cure = cure

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        raise AttributeError(f"`{owner.__name__}` has no `{self._name}`. {self._cure.format(name=self._name)}")


def unavailable(cure: str, count: int = 2) -> tuple[Any, ...]:
    """Methods that a class does not have, such as `from_preset` and `from_pretrained`.

    Args:
        cure: what to call instead; "{name}" in it stands for the method's name.
        count: how many methods.

    Returns:
        As many class attributes, each of which raises an AttributeError with the cure.
    """
    return tuple(_Unavailable(cure) for _ in range(count))


def check_keywords(owner: str, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """TypeError for a keyword that a function does not have, with the argument that it is meant for."""
    known = inspect.signature(function).parameters
    has_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    for name in () if has_any else given.keys() - known.keys():
        other = ARGUMENTS.get(name)
        close = [other] if other in known else difflib.get_close_matches(name, list(known), n=1)
        cure = WAYS.get(name) or (f"Did you mean `{close[0]}`?" if close else f"It has {', '.join(list(known)[1:])}.")
        rule = f"must be an argument of `{function.__name__}`, which has none of this name"
        raise TypeError(f"`{owner}`: `{name}` {rule}. Received: {name}={reprlib.repr(given[name])}. {cure}")


def hint_keywords(cls: Class) -> Class:
    """Checks the keywords of a task's constructor, and of the methods that users call most; a decorator."""
    make = cls.__new__

    def checked_new(kind: Any, *args: Any, **values: Any) -> Any:
        check_keywords(kind.__name__, kind.__init__, values)
        return make(kind, *args, **values)

    def checked(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(self: Any, *args: Any, **values: Any) -> Any:
            check_keywords(type(self).__name__, method, values)
            return method(self, *args, **values)

        return call

    cls.__new__ = checked_new  # type: ignore[method-assign, assignment]
    for name in ("compile", "fit", "predict", "answer"):
        setattr(cls, name, checked(vars(cls)[name]))
    return cls


def hint_transformers_names(cls: Class) -> Class:
    """Makes a config report all unknown arguments at once, with our names for those of transformers; a decorator."""
    init = cls.__init__  # type: ignore[misc]
    known = list(inspect.signature(cls).parameters)

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **values: Any) -> None:
        unknown = {name: FIELDS.get(name) for name in values if name not in known}
        if unknown:
            hints = [f"{name} (here {our!r})" if our else name for name, our in unknown.items()]
            raise TypeError(
                f"`{cls.__name__}`: every argument must be one of {known}. Received: {', '.join(hints)}. "
                "For the content of a config.json: `keras_bert_layers.checkpoints.config_from_huggingface(values)`."
            )
        init(self, *args, **values)

    cls.__init__ = checked  # type: ignore[misc]
    return cls


def check_scikit_learn(owner: str, user: str) -> None:
    """Raises a ModuleNotFoundError that names the owner and the user of scikit-learn if it is not installed."""
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"`{owner}`: `{user}` needs scikit-learn, which is not installed here. Install it with "
            "`pip install scikit-learn`.",
            name="sklearn",
        ) from error


def import_sentencex(owner: str, user: str) -> Any:
    """The library that splits sentences; a ModuleNotFoundError that names the owner and the user if there is none."""
    try:
        return importlib.import_module("sentencex")
    except ModuleNotFoundError as error:
        cure = "Install it with `pip install keras-bert-layers[sentences]`."
        raise ModuleNotFoundError(f"`{owner}`: {user} needs sentencex. {cure}", name="sentencex") from error
