"""The normalisation tables: what each reference makes of each character, in the form that tf.text's op reads.

`build.py` makes them; `tables.json` says from which versions.
"""

from __future__ import annotations

import functools
import json
import zlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

# Stands for a capital sigma in a normalised text. A soft hyphen: Google's clean-up drops it, so no text brings its own,
# and it is as many bytes as the two small sigmas, one of which takes its place.
SIGMA_MARKER = "\N{SOFT HYPHEN}"


@dataclass(frozen=True)
class NormalizationTable:
    """What a tokenizer needs to know of its reference.

    Attributes:
        model: flatbuffer for tf.text's `FastBertNormalizer`.
        stand_ins: code point of a letter that tf.text takes for punctuation -> code point that takes its place in the
            normalised text, and must in the vocabulary too.
        punctuation: inside of an RE2 class, what the normalised text is cut at.
        chinese: inside of an RE2 class, Chinese characters.
        final_sigma: RE2 pattern of a final sigma between its two groups, or None where sigma has one small form.
    """

    model: bytes
    stand_ins: dict[int, int]
    punctuation: str
    chinese: str
    final_sigma: str | None


@functools.cache
def load(reference: str, lowercase: bool, strip_accents: bool) -> NormalizationTable:
    """The table of one reference ("google" or "huggingface") under one pair of switches."""
    index = _index()
    compressed = (files(__name__) / file_name(reference, lowercase, strip_accents)).read_bytes()
    return NormalizationTable(
        model=zlib.decompress(compressed),
        stand_ins={ord(letter): ord(stand_in) for letter, stand_in in index["stand_ins"][reference].items()},
        punctuation=index["punctuation"],
        chinese=index["chinese"],
        final_sigma=index["final_sigma"] if reference == "google" and lowercase else None,
    )


def file_name(reference: str, lowercase: bool, strip_accents: bool) -> str:
    """The file of one table, compressed with zlib."""
    case = "lowercase" if lowercase else "cased"
    accents = "stripped" if strip_accents else "accents"
    return f"{reference}-{case}-{accents}.z"


def made_from() -> dict[str, str]:
    """What the tables were read off, with versions: "google", "huggingface", and "cutter", the op that cuts words."""
    return dict(_index()["made_from"])


@functools.cache
def _index() -> dict[str, Any]:
    return json.loads((files(__name__) / "tables.json").read_text(encoding="ascii"))
