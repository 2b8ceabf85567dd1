"""Reads tag names of every scheme: "B-person", "person_B", "S-person", "person", "O" and so on."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from keras_bert_layers._internal import checks

# Kinds of tags. A WORD is an answer by itself; the kind of a tag outside of all entities is "".
BEGIN, INSIDE, END, SINGLE, WORD = "B", "I", "E", "S", "W"

# The letters of each scheme and the kinds that they are. "M" is the "I" of BMES.
SCHEMES = {
    "bio": {"B": BEGIN, "I": INSIDE},
    "iob1": {"B": BEGIN, "I": INSIDE},
    "io": {"B": INSIDE, "I": INSIDE},
    "bioes": {"B": BEGIN, "I": INSIDE, "M": INSIDE, "E": END, "S": SINGLE},
    "bilou": {"B": BEGIN, "I": INSIDE, "L": END, "U": SINGLE},
    "labels": {},
}
_LETTERS = set("BIMESLU")
_SPECIAL = {a + word + b for a, b in ("[]", "<>") for word in ("PAD", "CLS", "SEP", "UNK", "MASK")}
_FORMS = (
    re.compile(r"(?P<letter>[A-Za-z])(?:[-_](?P<label>.*))?", re.DOTALL),
    re.compile(r"(?:(?P<label>.*)[-_])?(?P<letter>[A-Za-z])", re.DOTALL),
)
# The label of tags that have none: "B" and "I" alone.
NO_LABEL = "entity"


class Tag(NamedTuple):
    """What a tag says: a kind, "" outside of all entities, and the label of the entity."""

    kind: str
    label: str


def parse_tags(owner: str, names: list[str], scheme: str | None) -> tuple[str, tuple[Tag, ...]]:
    """The scheme's name, and what each tag says.

    Args:
        owner: the class to name in errors.
        names: the names of the tags.
        scheme: one of `SCHEMES`; None finds it out.

    Raises:
        ValueError: an unknown scheme.
    """
    if scheme is not None:
        checks.one_of(owner, "scheme", scheme, SCHEMES)
    outside = {name for name in names if name in {"O", "PAD"} or name.upper() in _SPECIAL}
    # Among other names of one letter, "b" and "o" are labels: Chinese has such parts of speech.
    alone = {name for name in names if len(name) == 1}
    plain = set() if all(name.upper() in {*_LETTERS, "O", "X"} for name in alone) else alone - outside
    outside |= {"o"} & alone - plain
    found = max((_letters_and_labels(form, names, outside | plain) for form in _FORMS), key=len)
    # A few labels that look like tags, "E-mail" among others, are labels.
    if scheme in {None, "io"} and 2 * len(found) <= len(names) - len(outside):
        found = {}
    if scheme is None:
        scheme = _scheme_of(set(found.values())) if found else ("io" if outside else "labels")
    if scheme == "labels":
        return scheme, tuple(Tag(WORD, name) for name in names)
    # In recipes with tags for all pieces, those after the first of a word have the tag "X".
    outside |= {"X"} if found else set()
    return scheme, tuple(_tag(name, found, outside, SCHEMES[scheme]) for name in names)


def _tag(name: str, found: dict[str, tuple[str, str]], outside: set[str], kinds: dict[str, str]) -> Tag:
    """What one tag says. A name without a letter of the scheme is a label, like transformers' pipeline reads it."""
    if name in outside:
        return Tag("", "")
    letter, label = found.get(name, ("", ""))
    return Tag(kinds[letter], label or NO_LABEL) if letter in kinds else Tag(INSIDE, name)


def _letters_and_labels(form: re.Pattern[str], names: list[str], others: set[str]) -> dict[str, tuple[str, str]]:
    """The letter and the label of each name in a form, except of some others."""
    matches = {name: form.fullmatch(name) for name in names if name not in others}
    return {
        name: (match["letter"].upper(), match["label"] or "")
        for name, match in matches.items()
        if match is not None and match["letter"].upper() in _LETTERS
    }


def _scheme_of(found: Collection[tuple[str, str]]) -> str:
    """The scheme of tags with letters.

    IOB1 with a "B" for each label is found to be BIO, which reads it in the same way.
    """
    letters = {letter for letter, _ in found}
    if letters & {"M", "E", "S"}:
        return "bioes"
    if letters & {"L", "U"}:
        return "bilou"
    if "B" not in letters:
        return "io"
    return "bio" if all(("B", label) in found for letter, label in found if letter == "I") else "iob1"
