"""Checks of the keys of a dictionary that came from a file."""

import difflib
import itertools
import reprlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from keras_bert_layers._internal import checks

_MOST_DESCRIBED = 20  # each is compared with all known keys

OTHER_MODEL = "This package has BERT's own encoder only; such a model computes something else."


def check_mapping(owner: str, values: Any) -> None:
    """TypeError unless `values` is a mapping."""
    if not isinstance(values, Mapping):
        cure = "Read the file first, for example with json.load; a config does no input or output."
        raise TypeError(checks.message(owner, "values", "be a dictionary", values, cure))


def check_known(owner: str, values: Mapping[str, Any], known: Collection[str]) -> None:
    """ValueError for keys that are not among `known`: it names them, each with the closest known one."""
    unknown = {key: value for key, value in values.items() if key not in known}
    if unknown:
        raise ValueError(
            f"`{owner}`: every key must be known. Received: {described(unknown, known)}. "
            "Remove those that do not change the encoder from the config."
        )


def described(unknown: Mapping[str, Any], known: Collection[str]) -> str:
    """Unknown keys with their values, the first of them, and the known key that each may be meant for.

    Examples:
        >>> described({"num_layer": 2, "language": "de"}, ["num_layers", "num_heads"])
        "num_layer=2 (did you mean 'num_layers'?), language='de'"
    """
    words = []
    for key, value in itertools.islice(unknown.items(), _MOST_DESCRIBED):
        close = difflib.get_close_matches(str(key), sorted(known), n=1)
        words.append(f"{key}={reprlib.repr(value)}" + (f" (did you mean {close[0]!r}?)" if close else ""))
    if len(unknown) > _MOST_DESCRIBED:
        words.append(f"and {len(unknown) - _MOST_DESCRIBED} more")
    return ", ".join(words)


def check_present(owner: str, values: Mapping[str, Any], required: Sequence[str]) -> None:
    """ValueError if a required key is missing."""
    missing = [key for key in required if key not in values]
    if missing:
        rule = f"have the keys {missing}, which have no default"
        raise ValueError(checks.message(owner, "values", rule, sorted(values)))


def check_only(
    owner: str,
    values: Mapping[str, Any],
    only: Mapping[str, tuple[Any, ...]],
    reasons: Mapping[str, str] | None = None,
) -> None:
    """ValueError if a key has another value than the allowed ones, with the key's reason; keys may be absent."""
    for key, allowed in only.items():
        if key in values and values[key] not in allowed:
            rule = f"be {' or '.join(repr(value) for value in allowed)}"
            raise ValueError(checks.message(owner, key, rule, values[key], (reasons or {}).get(key, OTHER_MODEL)))
