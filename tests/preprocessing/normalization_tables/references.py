"""How each reference splits a text into words before WordPiece.

Only the program that builds the tables uses this; tokenizers use the tables.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable

from keras_bert_layers.preprocessing.byte_level.text_encoder import LETTER, NUMBER, OTHER, WHITESPACE

SIGMA = "\N{GREEK CAPITAL LETTER SIGMA}"

Words = Callable[[str], list[str]]


def google_words(lowercase: bool, strip_accents: bool) -> Words:
    """The basic tokenizer of google-research/bert, with two separate switches.

    References:
        google-research/bert, `tokenization.py`, class `BasicTokenizer`.
    """

    def words(text: str) -> list[str]:
        found: list[str] = []
        for word in "".join(_google_clean(character) for character in text).split():
            cased = word.lower() if lowercase else word
            stripped = _without_marks(cased) if strip_accents else cased
            found += "".join(f" {c} " if _google_punctuation(c) else c for c in stripped).split()
        return found

    return words


def huggingface_words(lowercase: bool, strip_accents: bool) -> Words:
    """The normalizer and pre-tokenizer of transformers' fast BertTokenizer, from the `tokenizers` library."""
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    normalizer = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=strip_accents, lowercase=lowercase
    )
    splitter = BertPreTokenizer()

    def words(text: str) -> list[str]:
        return [word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))]

    return words


def word_characters() -> list[int]:
    """The code points beside which the `tokenizers` library finds no added token with `single_word`, sorted."""
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.models import WordLevel

    tokenizer = Tokenizer(WordLevel({"?": 0}, unk_token="?"))
    tokenizer.add_tokens([AddedToken("!", single_word=True, normalized=False)])
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000 and code != ord("!")]
    encodings = tokenizer.encode_batch_fast([f"{chr(code)}!" for code in codes])
    return [code for code, encoding in zip(codes, encodings, strict=True) if encoding.ids == [0]]


def final_sigma_pattern(marker: str, stand_ins: dict[str, str]) -> str:
    """The RE2 pattern of a final capital sigma in normalized text, in which `marker` replaces every capital sigma.

    Python's `str.lower` turns a capital sigma into a final sigma if there is a cased letter before it and none after
    it; characters that are case-ignorable in Unicode do not count. The two classes of characters are found by calling
    `str.lower`; a stand-in counts as its letter. The two groups match what is before and after the marker.
    """
    letters = {stand_in: letter for letter, stand_in in stand_ins.items()} | {marker: SIGMA}
    cased, ignorable = [], []
    for code in range(1, 0x110000):
        character = letters.get(chr(code), chr(code))
        if f"{character}{SIGMA}".lower()[-1] == "ς":
            cased.append(code)
        elif f"A{character}{SIGMA}".lower()[-1] == "ς":
            ignorable.append(code)
    letter, skipped = re2_class(cased), re2_class(ignorable)
    return rf"([{letter}][{skipped}]*){marker}([{skipped}]*(?:[^{letter}{skipped}]|\z))"


def re2_class(codes: list[int]) -> str:
    """The inside of an RE2 character class of exactly `codes` (sorted, without surrogates)."""
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(rf"\x{{{a:X}}}" if a == b else rf"\x{{{a:X}}}-\x{{{b:X}}}" for a, b in ranges)


def is_chinese(code: int) -> bool:
    """Whether the code point is a Chinese character to google-research/bert."""
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2B73F
        or 0x2B740 <= code <= 0x2B81F
        or 0x2B820 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )


def _google_clean(character: str) -> str:
    """A character after `_clean_text` and `_tokenize_chinese_chars`."""
    category = unicodedata.category(character)
    if character in "\t\n\r" or category == "Zs":
        return " "
    if character in "\0\N{REPLACEMENT CHARACTER}" or category in ("Cc", "Cf"):
        return ""
    return f" {character} " if is_chinese(ord(character)) else character


def _google_punctuation(character: str) -> bool:
    ascii_symbol = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return ascii_symbol or unicodedata.category(character).startswith("P")


def _without_marks(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")


def character_classes() -> bytes:
    """The class of each code point in GPT-2's pattern, up to the last that is no other character."""
    from tokenizers.pre_tokenizers import ByteLevel

    splitter = ByteLevel(add_prefix_space=False)
    beside = {b"a"[0]: LETTER, b"0"[0]: NUMBER, b"!"[0]: OTHER}
    classes = bytearray()
    for code in range(0x110000):
        character = "" if 0xD800 <= code < 0xE000 else chr(code)
        found = [kind for one, kind in beside.items() if len(splitter.pre_tokenize_str(chr(one) + character)) == 1]
        classes.append(found[0] if len(found) == 1 else OTHER if found else WHITESPACE)
    return bytes(classes).rstrip(bytes([OTHER])) + bytes([OTHER])


def composition() -> bytes:
    """JSON of decompositions, of classes of marks, and of pairs with what they are composed to."""
    from tokenizers.normalizers import NFC, NFD

    composed, decomposed = NFC().normalize_str, NFD().normalize_str
    texts = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000 and not 0xAC00 <= code < 0xD7A4]
    parts = {ord(text): decomposed(text) for text in texts if decomposed(text) != text}
    classes = {}
    for text in texts:
        kind = unicodedata.combining(text)
        # The library's tables are older than Python's: a mark that it does not know stays behind one of another class.
        pair = "a" + ("\u0345" + text if kind == 1 else text + "\u0334")
        if kind and (ord(text) in parts or decomposed(pair) != pair):
            classes[ord(text)] = kind
    pairs = []
    for code, text in parts.items():
        if composed(text) == chr(code):
            pairs.append([composed(text[:-1]), text[-1], chr(code)])
    return json.dumps([parts, classes, pairs], separators=(",", ":")).encode()


def folding() -> bytes:
    """JSON of what each character is in form NFKD without marks, Korean syllables left out, and of small letters."""
    from tokenizers.normalizers import NFKD, Lowercase, Sequence, StripAccents

    texts = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000 and not 0xAC00 <= code < 0xD7A4]
    found = []
    for normalizer in (Sequence([NFKD(), StripAccents()]), Lowercase()):
        pairs = {ord(text): normalizer.normalize_str(text) for text in texts}
        found.append({code: text for code, text in pairs.items() if text != chr(code)})
    return json.dumps(found, separators=(",", ":")).encode()
