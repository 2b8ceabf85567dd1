"""Tag schemes of named entities: BIO, IOB1, IO, BIOES, BILOU, or plain labels.

`tag_scheme` parses tag names such as "B-person" or "person_B" into a `TagScheme`, whose arrays answer every question
that decoding, metrics, training and the conditional random field have, so that no other code reads a prefix.
"""

import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers._internal import checks

# Kinds of tags. A WORD is an entity on its own; the kind of a tag outside of all entities is "".
BEGIN, INSIDE, END, SINGLE, WORD = "B", "I", "E", "S", "W"

# The letters of each scheme and the kind that each stands for. "M" is the "I" of BMES.
SCHEMES = {
    "bio": {"B": BEGIN, "I": INSIDE},
    "iob1": {"B": BEGIN, "I": INSIDE},
    "io": {"B": INSIDE, "I": INSIDE},
    "bioes": {"B": BEGIN, "I": INSIDE, "M": INSIDE, "E": END, "S": SINGLE},
    "bilou": {"B": BEGIN, "I": INSIDE, "L": END, "U": SINGLE},
    "labels": {},
}
_LETTERS = set("BIMESLU")
# The prefixes that files of tags have; `as_bio` reads them.
PREFIXES = {letter: kind for letter, kind in (SCHEMES["bioes"] | SCHEMES["bilou"]).items() if letter != "M"}
_SPECIAL = {a + word + b for a, b in ("[]", "<>") for word in ("PAD", "CLS", "SEP", "UNK", "MASK")}
_FORMS = (
    re.compile(r"(?P<letter>[A-Za-z])(?:[-_](?P<label>.*))?", re.DOTALL),
    re.compile(r"(?:(?P<label>.*)[-_])?(?P<letter>[A-Za-z])", re.DOTALL),
)
# The label of tags that have none: "B" and "I" alone.
NO_LABEL = "entity"


class Tag(NamedTuple):
    """A parsed tag: its kind, "" outside of all entities, and the label of the entity."""

    kind: str
    label: str


def parse_tags(owner: str, names: list[str], scheme: str | None) -> tuple[str, tuple[Tag, ...]]:
    """Parses tag names: the scheme's name, and the kind and label of each tag.

    Args:
        owner: the class to name in errors.
        names: the names of the tags.
        scheme: one of `SCHEMES`; None infers it from the names.

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
    kinds = SCHEMES[scheme]

    def parsed(name: str) -> Tag:
        if name in outside:
            return Tag("", "")
        letter, label = found.get(name, ("", ""))
        # A name without a letter of the scheme is a label, as in transformers' pipeline.
        return Tag(kinds[letter], label or NO_LABEL) if letter in kinds else Tag(INSIDE, name)

    return scheme, tuple(map(parsed, names))


def _letters_and_labels(form: re.Pattern[str], names: list[str], others: set[str]) -> dict[str, tuple[str, str]]:
    """The letter and the label of each name that has a form; `others` are left out."""
    matches = {name: form.fullmatch(name) for name in names if name not in others}
    return {
        name: (match["letter"].upper(), match["label"] or "")
        for name, match in matches.items()
        if match is not None and match["letter"].upper() in _LETTERS
    }


def _scheme_of(found: Collection[tuple[str, str]]) -> str:
    """Infers the scheme of tags with letters; IOB1 with a "B" for each label reads the same as BIO, and is BIO here."""
    letters = {letter for letter, _ in found}
    if letters & {"M", "E", "S"}:
        return "bioes"
    if letters & {"L", "U"}:
        return "bilou"
    if "B" not in letters:
        return "io"
    return "bio" if all(("B", label) in found for letter, label in found if letter == "I") else "iob1"


#: The tag of a word that the loss ignores, the same number as in torch's cross entropy.
NO_TAG = -100

# The kind of tag of a word in an entity, by whether it is the first and the last word; the first kind that exists.
_KINDS = {(True, True): (SINGLE, BEGIN, END, INSIDE, WORD), (True, False): (BEGIN, INSIDE, WORD)}
_KINDS |= {(False, True): (END, INSIDE, WORD), (False, False): (INSIDE, WORD)}


@dataclasses.dataclass(frozen=True)
class TagScheme:
    """The meaning of each tag of a model, as arrays of C tags and L labels.

    Args:
        name: "bio", "iob1", "io", "bioes", "bilou" or "labels".
        tags: the parsed tags, in the order of their ids.
    """

    name: str
    tags: tuple[Tag, ...]

    @functools.cached_property
    def labels(self) -> list[str]:
        """The labels of the entities, in the order of their first tags."""
        return list(dict.fromkeys(tag.label for tag in self.tags if tag.kind))

    @functools.cached_property
    def label_ids(self) -> np.ndarray:
        """The label of each tag, an index into `labels`; -1 outside of all entities. Int32 `(C,)`."""
        return np.array([self.labels.index(tag.label) if tag.kind else -1 for tag in self.tags], "int32")

    @functools.cached_property
    def begins(self) -> np.ndarray:
        """Whether a word with this tag never continues the entity before it, bool `(C,)`."""
        return self._is((BEGIN, SINGLE, WORD))

    @functools.cached_property
    def ends(self) -> np.ndarray:
        """Whether no word continues the entity of a word with this tag, bool `(C,)`."""
        return self._is((END, SINGLE, WORD))

    @functools.cached_property
    def outside(self) -> int:
        """The tag of words outside of all entities; `NO_TAG` if there is none."""
        return next((index for index, tag in enumerate(self.tags) if not tag.kind), NO_TAG)

    @functools.cached_property
    def span_tags(self) -> np.ndarray:
        """The tag of a word in a span, or `NO_TAG`, int32 `(L, 2, 2, 2)`.

        The axes: its label, whether it is the first word, whether it is the last, and whether the word before is in
        another span of the same label, the only place where IOB1 has a "B".
        """
        found = np.full((max(len(self.labels), 1), 2, 2, 2), NO_TAG, "int32")
        for label, first, last, touches in np.ndindex(found.shape):
            begins = first and (touches or self.name != "iob1")
            found[label, first, last, touches] = self._tag(label, _KINDS[bool(begins), bool(last)])
        return found

    @functools.cached_property
    def part_tags(self) -> np.ndarray:
        """The tag of a part of a word, int32 `(C, 2, 2)`: by the word's tag, whether it is the first part, the last."""
        found = np.empty((len(self.tags), 2, 2), "int32")
        for index, first, last in np.ndindex(found.shape):
            begins = first and self.tags[index].kind in (BEGIN, SINGLE)
            ends = last and self.tags[index].kind in (END, SINGLE)
            is_whole = self.label_ids[index] < 0 or (first and last)
            kinds = _KINDS[bool(begins), bool(ends)]
            found[index, first, last] = index if is_whole else self._tag(int(self.label_ids[index]), kinds)
        return found

    @functools.cached_property
    def whole_tags(self) -> np.ndarray:
        """The tag of a word by the tags of its first and its last part, int32 `(C, C)`."""
        found = np.repeat(np.arange(len(self.tags), dtype="int32")[:, None], len(self.tags), axis=1)
        for index in np.flatnonzero(self._is((BEGIN, INSIDE))):
            label = int(self.label_ids[index])
            closing = self._is((END,)) & (self.label_ids == label)
            found[index, closing] = self._tag(label, _KINDS[self.tags[index].kind == BEGIN, True])
        return found

    @functools.cached_property
    def may_follow(self) -> np.ndarray:
        """Whether a tag may follow another in a row of tags, bool `(C + 1, C)`; the last line is for the first tag."""
        may_continue = np.append(self._is((BEGIN, INSIDE)), False)  # [C + 1]
        label_before = np.append(self.label_ids, -1)
        continued = (label_before[:, None] == self.label_ids) & may_continue[:, None] & (self.label_ids >= 0)
        needs_before = np.array([self._needs_word_before(tag) for tag in self.tags])
        needs_after = np.append(~self.may_end, False)
        return np.where(needs_after[:, None], continued & self._is((INSIDE, END)), ~needs_before | continued)

    @functools.cached_property
    def may_end(self) -> np.ndarray:
        """Whether a tag may be the last of a row, bool `(C,)`."""
        return ~np.array([self._needs_word_after(tag) for tag in self.tags])

    def _needs_word_before(self, tag: Tag) -> bool:
        """Whether a tag stands only after one of the same entity, or in IOB1 for a "B" after one of its label."""
        kinds = self._kinds.get(tag.label, set())
        if self.name == "iob1":
            return tag.kind == BEGIN
        return (tag.kind == INSIDE and BEGIN in kinds) or (tag.kind == END and bool(kinds & {BEGIN, SINGLE}))

    def _needs_word_after(self, tag: Tag) -> bool:
        """Whether a tag stands only before one of the same entity."""
        kinds = self._kinds.get(tag.label, set())
        return (tag.kind == INSIDE and END in kinds) or (tag.kind == BEGIN and {END, SINGLE} <= kinds)

    @functools.cached_property
    def _kinds(self) -> dict[str, set[str]]:
        """The kinds of tags of each label."""
        return {label: {tag.kind for tag in self.tags if tag.label == label} for label in self.labels}

    def _is(self, kinds: Sequence[str]) -> np.ndarray:
        return np.array([tag.kind in kinds for tag in self.tags], bool)

    @functools.cached_property
    def _ids(self) -> dict[tuple[int, str], int]:
        """The first tag of each label and kind."""
        pairs = [(int(label), tag.kind) for label, tag in zip(self.label_ids, self.tags, strict=True)]
        return {pair: index for index, pair in reversed([*enumerate(pairs)])}

    def _tag(self, label: int, kinds: Sequence[str]) -> int:
        """The tag of a label with the first of some kinds that exists; `NO_TAG` if none does."""
        return next((self._ids[label, kind] for kind in kinds if (label, kind) in self._ids), NO_TAG)


def tag_scheme(owner: str, tag_names: Any, scheme: str | None = None) -> TagScheme:
    """The `TagScheme` of a model's tag names.

    Args:
        owner: the class to name in errors.
        tag_names: one name for each tag, in the order of their ids.
        scheme: its name; None infers it from the names.

    Raises:
        TypeError: not a list of strings.
        ValueError: an empty list, or a name twice; an unknown scheme.
    """
    return TagScheme(*parse_tags(owner, check_tag_names(owner, tag_names), scheme))


def check_tag_names(owner: str, tag_names: Any) -> list[str]:
    """Checks tag names, and returns them as a list; TypeError or ValueError as `tag_scheme`."""
    is_list = isinstance(tag_names, Sequence | np.ndarray) and not isinstance(tag_names, str | bytes)
    names = list(tag_names) if is_list else []
    if not is_list or not all(isinstance(name, str) for name in names):
        raise TypeError(checks.message(owner, "tag_names", "be a list of strings", tag_names))
    if not names or len(set(names)) != len(names):
        raise ValueError(checks.message(owner, "tag_names", "hold at least one name, each once", names))
    return [str(name) for name in names]


def bio_tag_names(labels: Iterable[str]) -> list[str]:
    """The names of BIO tags: "O", and "B-" and "I-" of each label."""
    return ["O", *(f"{prefix}-{label}" for label in labels for prefix in (BEGIN, INSIDE))]


def as_bio(tags: Iterable[str]) -> list[str]:
    """Tags of one sentence with any of `PREFIXES`, such as "S-person", as BIO tags of the same entities."""
    found = []
    open_label = None
    for tag in tags:
        prefix, _, label = tag.partition("-")
        kind = PREFIXES.get(prefix, "")
        begins = kind in (BEGIN, SINGLE) or label != open_label
        found.append(f"{BEGIN if begins else INSIDE}-{label}" if kind else tag)
        open_label = None if kind in ("", END, SINGLE) else label
    return found
