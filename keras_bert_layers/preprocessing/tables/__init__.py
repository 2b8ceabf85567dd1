"""Normalization tables: how each reference replaces each character, in the format of tf.text's op.

`tests/preprocessing/normalization_tables/build.py` makes them; `tables.json` records the versions they were made from.
"""

import functools
import json
import zlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

# Marks a capital sigma in normalized text. Google's clean-up drops soft hyphens, so no text has its own, and it has as
# many bytes as the two small sigmas, one of which replaces it.
SIGMA_MARKER = "\N{SOFT HYPHEN}"


CLASSES, COMPOSITION, FOLDING = "character-classes.z", "composition.z", "folding.z"


@dataclass(frozen=True)
class NormalizationTable:
    """The data with which a tokenizer follows its reference.

    Attributes:
        model: flatbuffer for tf.text's `FastBertNormalizer`.
        stand_ins: code point of a letter that tf.text treats as punctuation -> code point that replaces it in the
            normalized text, and must replace it in the vocabulary too.
        punctuation: the characters at which the normalized text is split, for an RE2 character class.
        chinese: Chinese characters, for an RE2 character class.
        word: letters, digits, marks and underscores, for an RE2 character class.
        final_sigma: RE2 pattern of a final sigma between its two groups, or None if sigma has only one small form.
    """

    model: bytes
    stand_ins: dict[int, int]
    punctuation: str
    chinese: str
    word: str
    final_sigma: str | None


@functools.cache
def load(reference: str, lowercase: bool, strip_accents: bool) -> NormalizationTable:
    """The table of one reference ("google" or "huggingface") and one pair of switches."""
    index = _index()
    compressed = (files(__name__) / file_name(reference, lowercase, strip_accents)).read_bytes()
    return NormalizationTable(
        model=zlib.decompress(compressed),
        stand_ins={ord(letter): ord(stand_in) for letter, stand_in in index["stand_ins"][reference].items()},
        punctuation=index["punctuation"] + index["split_off"][reference],
        chinese=index["chinese"],
        word=index["word"],
        final_sigma=index["final_sigma"] if reference == "google" and lowercase else None,
    )


@functools.cache
def character_classes() -> np.ndarray:
    """The class of each code point in GPT-2's pattern, uint8; those after the last have its class."""
    return np.frombuffer(zlib.decompress((files(__name__) / CLASSES).read_bytes()), np.uint8)


class Composition(NamedTuple):
    """How characters are composed and decomposed in Unicode's normal forms C and D, without Korean syllables.

    Attributes:
        decomposed: a code point -> all of its parts, for those that have parts.
        classes: a code point of a mark -> its canonical combining class.
        composed: two characters, and the one that they are composed to.
    """

    decomposed: dict[int, str]
    classes: dict[int, int]
    composed: list[list[str]]


@functools.cache
def composition() -> Composition:
    """The tables of the library `tokenizers`."""
    decomposed, classes, composed = json.loads(zlib.decompress((files(__name__) / COMPOSITION).read_bytes()))
    decomposed, classes = ({int(code): value for code, value in part.items()} for part in (decomposed, classes))
    return Composition(decomposed, classes, composed)


@functools.cache
def folding(*, lowercase: bool, strip_accents: bool) -> dict[str, str]:
    """A character -> what `tokenizers` makes of it: its parts without marks (NFKD), its small letter, or both."""
    parts = json.loads(zlib.decompress((files(__name__) / FOLDING).read_bytes()))
    stripped, small = ({chr(int(code)): text for code, text in part.items()} for part in parts)
    if not strip_accents:
        return small if lowercase else {}
    # Korean syllables: The Unicode Standard, section 3.12.
    for index in range(11172):
        tail = chr(0x11A7 + index % 28) if index % 28 else ""
        stripped[chr(0xAC00 + index)] = chr(0x1100 + index // 588) + chr(0x1161 + index // 28 % 21) + tail
    if not lowercase:
        return stripped
    return {**small, **{character: "".join(small.get(c, c) for c in text) for character, text in stripped.items()}}


@functools.cache
def clusters() -> dict[str, list[list[int]]]:
    """Ranges of the characters that join the one before, join the one after, and stand alone, by `tokenizers`."""
    return json.loads((files(__name__) / "clusters.json").read_text(encoding="ascii"))


def file_name(reference: str, lowercase: bool, strip_accents: bool) -> str:
    """The file name of one table, compressed with zlib."""
    case = "lowercase" if lowercase else "cased"
    accents = "stripped" if strip_accents else "accents"
    return f"{reference}-{case}-{accents}.z"


def made_from() -> dict[str, str]:
    """The sources of the tables, with versions: "google", "huggingface", and "cutter", the op that splits words."""
    return dict(_index()["made_from"])


@functools.cache
def _index() -> dict[str, Any]:
    return json.loads((files(__name__) / "tables.json").read_text(encoding="ascii"))
