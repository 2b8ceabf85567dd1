"""Reads rows of tags as entities, by one rule for the metric in the graph and the scores on the host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from keras_bert_layers._internal import checks

OUTSIDE = "O"
_TAG = re.compile(r"([BIES])(?:-(.*))?", re.DOTALL)


def parse_tag(owner: str, argument: str, tag: str) -> tuple[str, str]:
    """Splits a tag into its prefix, one of "BIESO", and the entity's type, "" without one.

    Args:
        owner: the class or function to name in errors.
        argument: the argument to name in errors.
        tag: for example "B-person", "I-person" or "O".

    Raises:
        TypeError: the tag is not a string.
        ValueError: it does not have this form.
    """
    if not isinstance(tag, str):
        raise TypeError(checks.message(owner, argument, "hold strings", tag))
    if tag == OUTSIDE:
        return OUTSIDE, ""
    match = _TAG.fullmatch(tag)
    if match is None:
        rule = 'hold tags such as "B-person", "I-person" and "O"'
        raise ValueError(checks.message(owner, argument, rule, tag))
    return match[1], match[2] or ""


def is_break(before: tuple[str, str], tag: tuple[str, str]) -> bool:
    """Whether an entity starts or ends between two neighbouring tags, as in conlleval and seqeval.

    An "I" continues the entity before it only if both have the same type; else it starts an entity.
    """
    if OUTSIDE in (before[0], tag[0]):
        return before[0] != tag[0]
    return tag[0] in "BS" or before[0] in "ES" or before[1] != tag[1]


def read_entities(tags: Sequence[tuple[str, str]]) -> list[tuple[str, int, int]]:
    """The entities of one row of parsed tags: type, first position, and the position after the last."""
    outside = (OUTSIDE, "")
    row = [outside, *tags, outside]
    breaks = [index for index, pair in enumerate(pairwise(row)) if is_break(*pair)]
    return [(tags[start][1], start, end) for start, end in pairwise(breaks) if tags[start][0] != OUTSIDE]
