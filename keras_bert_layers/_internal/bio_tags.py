"""BIO tags of words: "O" outside of entities, "B-person" for a person's first word, "I-person" for the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal import checks

OUTSIDE = "O"
BEGIN = "B-"
INSIDE = "I-"


def check_tag_names(owner: str, tag_names: Any) -> list[str]:
    """Checks tag names, and returns them as a list.

    Args:
        owner: the class to name in errors.
        tag_names: one name for each tag, in the order of their ids.

    Raises:
        TypeError: not a list of strings.
        ValueError: a name twice; no "O"; only "O"; a name of another form; or an "I-" without its "B-".
    """
    if isinstance(tag_names, str | bytes) or not isinstance(tag_names, Sequence):
        raise TypeError(checks.message(owner, "tag_names", "be a list of strings", tag_names))
    names = list(tag_names)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(checks.message(owner, "tag_names", "be a list of strings", names))
    if len(set(names)) != len(names) or len(names) < 2 or OUTSIDE not in names:
        rule = f'hold "{OUTSIDE}" and at least one other name, each once'
        raise ValueError(checks.message(owner, "tag_names", rule, names))
    for name in names:
        if name != OUTSIDE and not label_of(name):
            cure = "Convert tags of other schemes first."
            rule = f'hold "{OUTSIDE}" and names such as "{BEGIN}person" and "{INSIDE}person"'
            raise ValueError(checks.message(owner, "tag_names", rule, name, cure))
        if name.startswith(INSIDE) and BEGIN + label_of(name) not in names:
            cure = f"Add {BEGIN + label_of(name)!r}; every entity starts with one."
            raise ValueError(checks.message(owner, "tag_names", f'hold a "{BEGIN}" for each "{INSIDE}"', names, cure))
    return names


def label_of(tag: str) -> str:
    """The label of a tag, such as "person" of "B-person"; "" if it is not a tag of an entity."""
    return tag[len(BEGIN) :] if tag.startswith((BEGIN, INSIDE)) else ""


def may_follow(previous: str | None, tag: str) -> bool:
    """Whether a tag may follow another, or None at the start: an "I-" only inside an entity of its label."""
    if not tag.startswith(INSIDE):
        return True
    return previous is not None and label_of(previous) == label_of(tag)
