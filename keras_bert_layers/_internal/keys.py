"""Checks of the keys of a dictionary that came from a file."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from keras_bert_layers._internal import checks

OTHER_MODEL = "This package has BERT's own encoder only; such a model computes something else."


def check_mapping(owner: str, values: Any) -> None:
    """TypeError unless `values` is a mapping."""
    if not isinstance(values, Mapping):
        cure = "Read the file first, for example with json.load; a config does no input or output."
        raise TypeError(checks.message(owner, "values", "be a dictionary", values, cure))


def check_known(owner: str, values: Mapping[str, Any], known: Collection[str]) -> None:
    """ValueError for a key that is not among `known`, with the closest of them."""
    for key, value in values.items():
        if key not in known:
            close = difflib.get_close_matches(key, sorted(known), n=1)
            hint = f"Did you mean {close[0]!r}? " if close else ""
            cure = f"{hint}If it does not change the encoder, remove it from the dictionary and call again."
            raise ValueError(checks.message(owner, key, "be a known key", value, cure))


def check_present(owner: str, values: Mapping[str, Any], required: Sequence[str]) -> None:
    """ValueError if a required key is missing."""
    missing = [key for key in required if key not in values]
    if missing:
        rule = f"have the keys {missing}, which have no default"
        raise ValueError(checks.message(owner, "values", rule, sorted(values)))


def check_only(owner: str, values: Mapping[str, Any], only: Mapping[str, tuple[Any, ...]]) -> None:
    """ValueError if a key has another value than the allowed ones; keys may be absent."""
    for key, allowed in only.items():
        if key in values and values[key] not in allowed:
            rule = f"be {' or '.join(repr(value) for value in allowed)}"
            raise ValueError(checks.message(owner, key, rule, values[key], OTHER_MODEL))
