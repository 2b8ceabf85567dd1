"""How a row of tags reads as entities: the one rule that the metric in the graph and the table on the host share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from keras_bert_layers._internal import checks

OUTSIDE = "O"
_TAG = re.compile(r"([BIES])(?:-(.*))?", re.DOTALL)


def parse_tag(owner: str, argument: str, tag: str) -> tuple[str, str]:
    """A tag as its place in the entity, one of "BIESO", and the entity's type, "" where it has none.

    Args:
        owner: who reads, named in the error.
        argument: which argument holds the tag.
        tag: such as "B-person", "I-person" or "O".

    Raises:
        TypeError: the tag is no string.
        ValueError: it is not of that form.
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
    """Whether an entity ends or starts between two neighbours, read as conlleval and seqeval do.

    An "I" continues the entity before it only if that has its type; else it starts one.
    """
    if OUTSIDE in (before[0], tag[0]):
        return before[0] != tag[0]
    return tag[0] in "BS" or before[0] in "ES" or before[1] != tag[1]


def read_entities(tags: Sequence[tuple[str, str]]) -> list[tuple[str, int, int]]:
    """The entities of one row of parsed tags: type, first position, and the position behind the last."""
    outside = (OUTSIDE, "")
    row = [outside, *tags, outside]
    breaks = [place for place in range(len(tags) + 1) if is_break(row[place], row[place + 1])]
    return [(tags[start][1], start, end) for start, end in pairwise(breaks) if tags[start][0] != OUTSIDE]
