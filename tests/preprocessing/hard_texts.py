"""Random texts of mixed scripts, marks, controls, special tokens, and words at the limits of length."""

import random

LIMITS = (99, 100, 101, 199, 200, 201)
REPEATED = ("a", "Z", "1", "é", "ก", "가", "\u1100", "😀", "ا", "あ", "\u0301")

# Ranges drawn from, ASCII more often than the others.
BLOCKS = [(0x20, 0x7F)] * 6 + [
    (0x00, 0x20),
    (0x80, 0x250),
    (0x250, 0x370),
    (0x370, 0x530),
    (0x590, 0x700),
    (0x900, 0xE00),
    (0xE00, 0x1000),
    (0x1100, 0x1200),
    (0x1680, 0x1900),
    (0x1AB0, 0x2000),
    (0x2000, 0x2070),
    (0x2070, 0x2C00),
    (0x3000, 0x3200),
    (0x4E00, 0x5000),
    (0xAC00, 0xD7A4),
    (0xE000, 0xE200),
    (0xF900, 0xFB00),
    (0xFB00, 0x10000),
    (0x10000, 0x12000),
    (0x1B000, 0x1B300),
    (0x1D000, 0x1D160),
    (0x1E900, 0x1E944),
    (0x1F300, 0x1F700),
    (0x2B700, 0x2B940),
    (0x2F800, 0x2FA20),
    (0xE0000, 0xE0100),
]

AWKWARD = (
    *("[SEP]", "[MASK]", "[CLS]", "[PAD]", "[UNK]", "[sep]", "[", "]", "##", "#", "'", ".", "·"),
    *("Σ", "ΣΑΣ", "ας", "Σ'", "İ", "ß", "ﬁ", "Ǆ", "ŉ", "Å", "K", "가", "각"),
    *("\u0301", "\u0345", "\u200d", "\ufeff", "\u2028", "\x85", "\x0b", "\x00", "\ufffd", "\xad", "\x11", "\x01"),
    *("\u1b4e", "\U00011f44", "\U0002b820", "\ue000", "\U000e0020", "\U000111c9", "\u166d"),
    *(" ", "  ", "\t", "\n", "\r\n", "\xa0", "\u3000"),
)

# Tokens with what tf.text and the references see differently, that no text can hold, or that are long.
HARD_TOKENS = (
    *("\u1b4e", "##\u1b4e", "a\U00011f44", "##\U00011f44b", "\U0002b820", "##\U0002b820", "\U000111c9", "##\u166d"),
    *("\ue000", "##\ue001", "\U000e0020", "a\U000e0020", "\xad", "a\xad", "\x01", "\x11", "\x11a", "new york", "\x00a"),
    *("ς", "##ς", "σ", "##σ", "Σ", "##Σ", "##", "###", "a#", "##\u0301", "##\u0345", "##i\u0307"),
    *("中国", "##中", "##国", "##ก", "ก", "##가", "가", "##😀", "😀", "##あ", "##Z", "a" * 100, "##" + "a" * 101),
    *("1" * 150, "a" * 230, "é" * 99, "\u3042" * 80),
)


def hard_texts(seed, number):
    """`number` texts; the same ones for the same seed."""
    generator = random.Random(seed)
    return ["".join(_part(generator) for _ in range(generator.randrange(14))) for _ in range(number)]


def _part(generator):
    draw = generator.random()
    if draw < 0.3:
        return generator.choice(AWKWARD)
    if draw < 0.34:
        return generator.choice(REPEATED) * (generator.choice(LIMITS) + generator.choice((0, 0, 1)))
    if draw < 0.5:
        return generator.choice(HARD_TOKENS).removeprefix("##") + generator.choice(("", " "))
    if draw < 0.6:
        return generator.choice(("Α", "α", "x", "1", "\u0301", "中", "Σ", "ʰ", "\xad", "\x00")) + "Σ"
    first, last = generator.choice(BLOCKS)
    return "".join(chr(generator.randrange(first, last)) for _ in range(generator.randrange(1, 6)))
