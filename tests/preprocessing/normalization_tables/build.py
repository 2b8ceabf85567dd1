"""Makes the tables in `keras_bert_layers/preprocessing/tables/`; run it from the top of the repository.

Needs an editable installation with the extra `test`, for `dartsclone` and `tokenizers`. The bytes depend on three
versions, which `tables.json` records: of Python's Unicode database (reference "google"), of `tokenizers` (reference
"huggingface"), and of tensorflow-text, whose op decides what is punctuation when it splits normalized text into words.
"""

from __future__ import annotations

import functools
import json
import unicodedata
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import references
import tensorflow as tf
import tensorflow_text as tf_text
from flatbuffer import normalizer_model
from references import SIGMA, Words, is_chinese, re2_class

from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.tables import CLASSES, COMPOSITION, FOLDING, SIGMA_MARKER, file_name

WORDS = {"google": references.google_words, "huggingface": references.huggingface_words}
SWITCHES = [(lowercase, strip) for lowercase in (True, False) for strip in (True, False)]
SCALARS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]

# Stand-ins are characters that the reference drops, so that normalized text never contains them otherwise:
# HuggingFace drops private-use characters, Google format characters, of which the tags are a block of 96.
FIRST_STAND_IN = {"google": 0xE0020, "huggingface": 0xE000}


class Cutter:
    """How tf.text's FastWordpieceTokenizer splits normalized text, found by running the op.

    A character between two letters gives one token (a letter), two (whitespace) or three (punctuation).
    """

    def __init__(self) -> None:
        tokenizer = tf_text.FastWordpieceTokenizer(["[UNK]", "a"], token_out_type=tf.int32)
        counts = tokenizer.tokenize([f"a{c}a" for c in SCALARS[1:]]).row_lengths().numpy().tolist()
        kinds = dict(zip(SCALARS[1:], counts, strict=True))
        self.punctuation = {c for c, count in kinds.items() if count == 3}
        apart = {c: " " if count == 2 else f" {c} " for c, count in kinds.items() if count > 1}
        self._apart = str.maketrans(apart)

    def leaves(self, character: str) -> bool:
        """Whether the op leaves a character between the letters a and b in their word."""
        return ord(character) not in self._apart

    def cuts(self, text: str, words: list[str]) -> bool:
        """Whether the op splits `text` between the letters a and b into `words`."""
        return [word for word in f"a{text.translate(self._apart)}b".split(" ") if word] == words


@functools.cache
def plain_words(reference: str) -> Words:
    """The words of each character between the letters a and b, without switches: computed once for all readers."""
    words, split = WORDS[reference](False, False), {}
    for text in (f"a{c}b" for c in SCALARS):
        if (found := words(text)) != [text]:
            split[text] = found
    return lambda text: split.get(text, [text])


def stand_ins(reference: str, cutter: Cutter) -> dict[str, str]:
    """Letters of the reference that tf.text treats as punctuation -> their stand-ins."""
    words = plain_words(reference)
    letters = [c for c in sorted(cutter.punctuation) if words(f"a{c}b") == [f"a{c}b"]]
    substitutes = {c: chr(FIRST_STAND_IN[reference] + i) for i, c in enumerate(letters)}
    for substitute in substitutes.values():
        if words(f"a{substitute}b") != ["ab"] or not cutter.cuts(substitute, [f"a{substitute}b"]):
            raise ValueError(f"U+{ord(substitute):04X} cannot stand in for another letter under {reference}.")
    return substitutes


def split_off(reference: str, cutter: Cutter) -> str:
    """Characters that the reference splits off and tf.text does not, for an RE2 character class."""
    words = plain_words(reference)
    found = [c for c in SCALARS if c not in cutter.punctuation and words(f"a{c}b") == ["a", c, "b"]]
    return re2_class([ord(c) for c in found if not is_chinese(ord(c))])


def replacements(words: Words, cutter: Cutter, substitutes: dict[str, str]) -> dict[str, str]:
    """Every character that must be replaced before tf.text's op -> its replacement."""
    table = str.maketrans(substitutes)
    found = {}
    for character in SCALARS:
        whole = f"a{character}b"
        wanted = words(whole)
        if wanted == [whole] and cutter.leaves(character):
            continue
        wanted = [word.translate(table) for word in wanted]
        spaced = " ".join(wanted)[1:-1]
        plain = spaced.replace(" ", "") or spaced
        replacement = next((text for text in (plain, spaced) if cutter.cuts(text, wanted)), None)
        if replacement is None:
            raise ValueError(f"U+{ord(character):04X} has no replacement that tf.text cuts into {wanted}.")
        if replacement != character:
            found[character] = replacement
    return found


def build_table(reference: str, lowercase: bool, strip_accents: bool, cutter: Cutter) -> bytes:
    """The normalizer model of one reference and one pair of switches."""
    switched = lowercase or strip_accents
    words = WORDS[reference](lowercase, strip_accents) if switched else plain_words(reference)
    found = replacements(words, cutter, stand_ins(reference, cutter))
    if reference == "google" and lowercase:
        found[SIGMA] = SIGMA_MARKER  # its lower case depends on its neighbours; decided after normalisation
    return normalizer_model(found)


def build_index(cutter: Cutter) -> dict[str, Any]:
    """The contents of `tables.json`: sources, stand-ins, and parts of the regular expressions."""
    punctuation = sorted(ord(c) for c in cutter.punctuation if not is_chinese(ord(c)))
    return {
        "made_from": {
            "google": f"unicodedata {unicodedata.unidata_version}",
            "huggingface": f"tokenizers {version('tokenizers')}",
            "cutter": f"tensorflow-text {version('tensorflow-text')}",
        },
        "stand_ins": {name: stand_ins(name, cutter) for name in WORDS},
        "punctuation": re2_class(punctuation),
        "split_off": {name: split_off(name, cutter) for name in WORDS},
        "chinese": re2_class([code for code in range(0x110000) if is_chinese(code)]),
        "word": re2_class(references.word_characters()),
        "final_sigma": references.final_sigma_pattern(SIGMA_MARKER, stand_ins("google", cutter)),
    }


def to_json(index: dict[str, Any]) -> str:
    """The text of `tables.json`."""
    return json.dumps(index, indent=1) + "\n"


def main() -> None:
    """Writes every table and the index into the package."""
    folder, cutter = Path(tables.__file__).parent, Cutter()
    for reference in WORDS:
        for lowercase, strip_accents in SWITCHES:
            model = build_table(reference, lowercase, strip_accents, cutter)
            (folder / file_name(reference, lowercase, strip_accents)).write_bytes(zlib.compress(model, 9))
    makers = {CLASSES: references.character_classes, COMPOSITION: references.composition, FOLDING: references.folding}
    for name, make in makers.items():
        (folder / name).write_bytes(zlib.compress(make(), 9))
    (folder / "tables.json").write_text(to_json(build_index(cutter)), encoding="ascii")


if __name__ == "__main__":
    main()
