"""Argument checks: every error names the class, the argument, the rule, what came, and where it helps the cure."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any


def message(owner: str, argument: str, rule: str, value: object, cure: str = "") -> str:
    """The one sentence that every argument error of this package uses."""
    text = f"`{owner}`: `{argument}` must {rule}. Received: {argument}={value!r}."
    return f"{text} {cure}" if cure else text


def positive_integer(owner: str, argument: str, value: Any) -> int:
    """`value` as an int of at least 1; TypeError or ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(message(owner, argument, "be an integer", value))
    if value < 1:
        raise ValueError(message(owner, argument, "be at least 1", value))
    return int(value)


def whole_number(owner: str, argument: str, value: Any) -> int:
    """`value` as an int of at least 0; TypeError or ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(message(owner, argument, "be an integer", value))
    if value < 0:
        raise ValueError(message(owner, argument, "be at least 0", value))
    return int(value)


def _number(owner: str, argument: str, value: Any) -> float:
    """`value` as a float; TypeError or ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(message(owner, argument, "be a number", value))
    try:
        return float(value)
    except OverflowError as error:  # an integer of more than 308 digits
        raise ValueError(message(owner, argument, "be a number that a float can hold", value)) from error


def fraction(owner: str, argument: str, value: Any) -> float:
    """`value` as a float in [0, 1); TypeError or ValueError otherwise."""
    number = _number(owner, argument, value)
    if not 0 <= number < 1:
        raise ValueError(message(owner, argument, "be at least 0 and less than 1", value))
    return number


def share(owner: str, argument: str, value: Any) -> float:
    """`value` as a float in [0, 1]; TypeError or ValueError otherwise."""
    number = _number(owner, argument, value)
    if not 0 <= number <= 1:
        raise ValueError(message(owner, argument, "be at least 0 and at most 1", value))
    return number


def positive_number(owner: str, argument: str, value: Any) -> float:
    """`value` as a float above 0; TypeError or ValueError otherwise."""
    number = _number(owner, argument, value)
    if not number > 0:
        raise ValueError(message(owner, argument, "be greater than 0", value))
    return number


def one_of(owner: str, argument: str, value: Any, options: Collection[Any], cure: str = "") -> Any:
    """`value` if it is one of `options`; ValueError otherwise."""
    if value not in options:
        raise ValueError(message(owner, argument, f"be one of {list(options)}", value, cure))
    return value


def divides(owner: str, argument: str, value: int, whole_name: str, whole: int) -> int:
    """`value` if it divides `whole`; ValueError otherwise."""
    if whole % value:
        rule = f"divide `{whole_name}` ({whole})"
        raise ValueError(message(owner, argument, rule, value))
    return value


def boolean(owner: str, argument: str, value: Any) -> bool:
    """`value` if it is True or False; TypeError otherwise."""
    if not isinstance(value, bool):
        raise TypeError(message(owner, argument, "be True or False", value))
    return value
