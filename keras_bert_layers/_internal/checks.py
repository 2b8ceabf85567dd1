"""Argument checks. Each error names the class, the argument, the rule and the value, and often a cure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sized
from numbers import Integral, Real
from typing import Any, TypeVar

from keras_bert_layers._internal.lazy import tf

Class = TypeVar("Class")
Value = TypeVar("Value")

#: The most characters of a value in an error.
MAX_SHOWN = 1000


def message(owner: str, argument: str, rule: str, value: object, cure: str = "") -> str:
    """The text of all argument errors of this package; a long value, such as a vocabulary, is cut."""
    shown = repr(value)
    if len(shown) > MAX_SHOWN:
        shown = f"{shown[:MAX_SHOWN]}… ({len(shown):,} characters)"
    text = f"`{owner}`: `{argument}` must {rule}. Received: {argument}={shown}."
    return f"{text} {cure}" if cure else text


def row_message(owner: str, rule: str, received: str, cure: str = "") -> str:
    """The text of errors about rows of data: the rule that they break, what they hold, and perhaps a cure."""
    return f"`{owner}`: {rule}. Received: {received}. {cure}".rstrip()


class Shown(str):
    """A summary of a long value for errors, shown without the quotes of a string."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def every_row(owner: str, rule: str, values: Any, is_right: Any, cure: str = "") -> None:
    """ValueError with the first row that is not right.

    Args:
        owner: the class that asks.
        rule: what holds for every row.
        values: an array `(rows, ...)`.
        is_right: bool array `(rows,)`.
        cure: what to do about it.
    """
    if not is_right.all():
        row = int(is_right.argmin())
        raise ValueError(row_message(owner, rule, f"{values[row]} in row {row}", cure))


def positive_integer(owner: str, argument: str, value: object) -> int:
    """`value` as an int of at least 1; TypeError or ValueError otherwise."""
    return integer(owner, argument, value, smallest=1)


def whole_number(owner: str, argument: str, value: object) -> int:
    """`value` as an int of at least 0; TypeError or ValueError otherwise."""
    return integer(owner, argument, value, smallest=0)


def integer(owner: str, argument: str, value: object, *, smallest: int, reason: str = "") -> int:
    """`value` as an int of at least `smallest`, for the `reason` given; TypeError or ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(message(owner, argument, "be an integer", value))
    if value < smallest:
        raise ValueError(message(owner, argument, f"be at least {smallest}{reason}", value))
    return int(value)


def optional(check: Callable[[str, str, Any], Value], owner: str, argument: str, value: object) -> Value | None:
    """None, or `value` if it passes another check of this module."""
    return None if value is None else check(owner, argument, value)


def fraction(owner: str, argument: str, value: object) -> float:
    """`value` as a float in [0, 1); TypeError or ValueError otherwise."""
    return _number(owner, argument, value, lambda number: 0 <= number < 1, "be at least 0 and less than 1")


def share(owner: str, argument: str, value: object) -> float:
    """`value` as a float in [0, 1]; TypeError or ValueError otherwise."""
    return _number(owner, argument, value, lambda number: 0 <= number <= 1, "be at least 0 and at most 1")


def at_least_one(owner: str, argument: str, value: object) -> float:
    """`value` as a float of at least 1; TypeError or ValueError otherwise."""
    return _number(owner, argument, value, lambda number: number >= 1, "be at least 1")


def positive_number(owner: str, argument: str, value: object) -> float:
    """`value` as a float above 0; TypeError or ValueError otherwise."""
    return _number(owner, argument, value, lambda number: number > 0, "be greater than 0")


def _number(owner: str, argument: str, value: object, is_valid: Callable[[float], bool], rule: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(message(owner, argument, "be a number", value))
    try:
        number = float(value)
    except OverflowError as error:  # an integer of more than 308 digits
        raise ValueError(message(owner, argument, "be a number that a float can hold", value)) from error
    if not is_valid(number):
        raise ValueError(message(owner, argument, rule, value))
    return number


def length(owner: str, argument: str, values: Sized, count: int, *, rule: str, unit: str) -> None:
    """Raises a ValueError with the rule and the number of units unless there are `count` values."""
    if len(values) != count:
        raise ValueError(f"`{owner}`: `{argument}` must {rule}. Received: {len(values)} {unit}.")


def one_of(owner: str, argument: str, value: object, options: Collection[Any], cure: str = "") -> Any:
    """`value` if it is one of `options`; ValueError otherwise."""
    if value not in options:
        raise ValueError(message(owner, argument, f"be one of {list(options)}", value, cure))
    return value


def instance(owner: str, argument: str, value: object, kind: type[Class], cure: str = "") -> Class:
    """`value` if it is an instance of a class; TypeError otherwise."""
    if not isinstance(value, kind):
        name = "string" if kind is str else kind.__name__
        raise TypeError(message(owner, argument, f"be a {name}", value, cure))
    return value


def ordered(owner: str, argument: str, values: object) -> Any:
    """`values` if they have an order and are not the letters of one string; TypeError otherwise."""
    is_set = isinstance(values, set | frozenset)
    if is_set or isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        cure = "A set has no order: `sorted(names)`." if is_set else "Write `[name, other_name]`."
        raise TypeError(message(owner, argument, "be a list of strings", values, cure))
    return values


def divides(owner: str, argument: str, value: int, whole_name: str, whole: int) -> int:
    """`value` if it divides `whole`; ValueError otherwise."""
    if whole % value:
        rule = f"divide `{whole_name}` ({whole})"
        raise ValueError(message(owner, argument, rule, value))
    return value


def boolean(owner: str, argument: str, value: object) -> bool:
    """`value` if it is True or False; TypeError otherwise."""
    if not isinstance(value, bool):
        raise TypeError(message(owner, argument, "be True or False", value))
    return value


def unicode_text(owner: str, text: str | bytes, row: int, rule: str = "texts must be valid Unicode") -> None:
    """ValueError for a text with half of a character, which UTF-8 cannot encode."""
    if isinstance(text, bytes) or text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        received = f"{text[error.start]!r} at character {error.start} of row {row}"
        cure = 'It is half of a character. Replace it: `text.encode("utf-8", "replace").decode()`.'
        raise ValueError(row_message(owner, rule, received, cure)) from error


def known_arguments(owner: str, given: Mapping[str, Any], names: Collection[str]) -> None:
    """ValueError with the first argument whose name is not one of `names`."""
    for name, value in given.items():
        if name not in names:
            raise ValueError(message(owner, name, f"be one of the arguments {list(names)}", value))


def constructor_arguments(cls: type, instance: Any) -> dict[str, Any]:
    """The constructor arguments of a class, read from the attributes of the same names.

    Args:
        cls: the class whose own `__init__` has the arguments; `*args` and `**kwargs` are left out.
        instance: an instance of `cls` or of a subclass, which may have other arguments.

    Returns:
        Argument name -> value.

    Examples:
        >>> class Brick:
        ...     def __init__(self, width, *, rate=0.1, **kwargs):
        ...         self.width, self.rate = width, rate
        >>> constructor_arguments(Brick, Brick(3))
        {'width': 3, 'rate': 0.1}
    """
    return {name: getattr(instance, name) for name in constructor_names(cls)}


def constructor_names(cls: type) -> list[str]:
    """The names of the arguments of a class's own `__init__`, without `*args` and `**kwargs`."""
    _, *parameters = inspect.signature(vars(cls)["__init__"]).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind not in variable]


def check_in_graph(values: object, condition: tf.Tensor, message: list[Any]) -> Any:
    """Checks a condition in graph: returns the values, and raises when they are computed if it does not hold.

    Args:
        values: a tensor or a ragged tensor.
        condition: bool `()`.
        message: strings and tensors, which the error shows.
    """
    check = tf.debugging.Assert(condition, message)
    with tf.control_dependencies([] if check is None else [check]):
        return tf.identity(values)
