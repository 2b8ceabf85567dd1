"""Texts that are made to break a tokenizer: wrong bytes, endless words, marks, controls, special tokens."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

SPECIAL = (b"[SEP]", b"[CLS]", b"[PAD]", b"[UNK]", b"[MASK]", b"[sep]", b"[", b"]", b"##", b"##s", b"[[SEP]]", b"[SEP")
# Direction marks and overrides, joiners, blanks without width, variation selectors, the byte order mark.
CONTROLS = (
    "\u200b\u200c\u200d\u2060\ufeff\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufe0f\u00ad"
)
LETTERS = (
    *"aZ1\u00e9\u0e01\uac00\u4e2d\u0627\u3042\u03a3\u0130\u00df\ufb01\U0001f600\ue000",
    "\u1100\u1161\u11a8",
)
ENDS = ("\0", "\x7f", "\x85", "\u2028", "\u3000", "\ufffd", "\uffff", "\U0010ffff", "\ud7ff", "\ue000")
# Bytes that are not UTF-8: lone surrogates, overlong forms, beyond Unicode, leads and trails alone.
BROKEN = (
    b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\xbd\xed\xb8\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\xaf",
    b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xff", b"\xfe", b"\x80", b"\xbf\xbf", b"\xc3",
    b"\xe2\x82", b"\xf0\x9f\x98",
)  # fmt: skip
NUM_SCALARS = 0x110000
SURROGATES = range(0xD800, 0xE000)
LONGEST_COMMON = 2_000
LONGEST_RARE = 100_000
RARE = 0.005


def hostile_texts(seed: int, count: int) -> Iterator[bytes]:
    """Texts of all kinds, most of them short, one in 200 of up to 100,000 bytes; same seed, same texts."""
    generator = random.Random(seed)
    for _ in range(count):
        longest = LONGEST_RARE if generator.random() < RARE else LONGEST_COMMON
        size = int(longest ** generator.random())
        yield generator.choice(KINDS)(generator, size)[:size]


def long_texts(size: int) -> dict[str, bytes]:
    """One text, of the given number of bytes, of each kind that has its own bounds in a tokenizer."""
    units = {
        "words": b"a good film ",
        "one word": b"a",
        "one word of many bytes": "\u00e9".encode(),
        "combining marks": "\u0301".encode(),
        "letters with 10,000 marks each": b"e" + "\u0301".encode() * 10_000,
        "special tokens": b"[SEP]",
        "beginnings of special tokens": b"[",
        "masks": b"[MASK] ",
        "suffixes": b"##",
        "punctuation": b"!",
        "Chinese": "\u4e2d".encode(),
        "capital sigmas": "\u03a3".encode(),
        "words of capital sigmas": "\u0391\u03a3 ".encode(),
        "controls": CONTROLS.encode(),
        "blanks": b" ",
        "zeros": b"\0",
        "no UTF-8": b"\xff\xc3",
        "lone surrogates": b"\xed\xa0\x80",
        "words of 101 characters": b"x" * 101 + b" ",
        "stand-in letters": "\ue000".encode(),
    }
    return {name: (unit * (size // len(unit) + 1))[:size] for name, unit in units.items()}


def _random_bytes(generator: random.Random, size: int) -> bytes:
    return generator.randbytes(size)


def _scalars(generator: random.Random, size: int) -> bytes:
    drawn = (generator.randrange(NUM_SCALARS) for _ in range(size // 3 + 1))
    return "".join(chr(code) for code in drawn if code not in SURROGATES).encode()


def _letters(generator: random.Random, size: int) -> bytes:
    return "".join(generator.choices((*LETTERS, " ", " "), k=size // 2 + 1)).encode()


def _marks(generator: random.Random, size: int) -> bytes:
    marks = "".join(map(chr, generator.choices(range(0x300, 0x370), k=size // 2 + 1)))
    return (generator.choice(LETTERS) + marks).encode()


def _controls(generator: random.Random, size: int) -> bytes:
    return "".join(generator.choices((*CONTROLS, *ENDS[:7], "a", " ", "\u05d0"), k=size // 2 + 1)).encode()


def _specials(generator: random.Random, size: int) -> bytes:
    return b"".join(generator.choices((*SPECIAL, b" ", b"a"), k=size // 3 + 1))


def _broken(generator: random.Random, size: int) -> bytes:
    pieces = (*BROKEN, *SPECIAL, *(letter.encode() for letter in LETTERS), b" ")
    return b"".join(generator.choices(pieces, k=size // 2 + 1))


def _cut_anywhere(generator: random.Random, size: int) -> bytes:
    text = bytearray(_letters(generator, size))
    for _ in range(1 + size // 50):
        text[generator.randrange(len(text))] = generator.randrange(256)
    return bytes(text)


def _one_word(generator: random.Random, size: int) -> bytes:
    return (generator.choice(LETTERS) * (size + 1)).encode()


def _ends(generator: random.Random, size: int) -> bytes:
    return "".join(generator.choices((*ENDS, "a"), k=size // 2 + 1)).encode()


KINDS: tuple[Callable[[random.Random, int], bytes], ...] = (
    _random_bytes, _scalars, _letters, _marks, _controls, _specials, _broken, _cut_anywhere, _one_word, _ends,
)  # fmt: skip
