"""The special tokens, the marks of words and pieces, and RE2 patterns that find strings in texts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from keras_bert_layers._internal.lazy import tf

PAD = "[PAD]"
UNKNOWN = "[UNK]"
START = "[CLS]"
SEPARATOR = "[SEP]"
MASK = "[MASK]"
#: Role -> the special token that BERT's own vocabularies have for it.
ROLES = {"pad": PAD, "unknown": UNKNOWN, "start": START, "separator": SEPARATOR, "mask": MASK}
SPECIAL_TOKENS = tuple(ROLES.values())

#: Begins a WordPiece token that continues a word.
SUFFIX = "##"
#: Begins a SentencePiece token that begins a word.
MARKER = "▁"

#: Of a SentencePiece model that is read; LaBSE, the largest vocabulary of a BERT, has 501,153 tokens.
MAX_PIECES = 1_000_000

# The characters of Unicode's property White_Space, which `\s` is not in RE2; `str.rstrip` strips four more.
WHITESPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def any_of(contents: Iterable[str]) -> str:
    """An RE2 pattern that matches the longest of several strings.

    In this order a string goes before those that it begins with, and RE2 finds the common beginnings, without which it
    is a hundred times slower on 2,000 strings.
    """
    return "|".join(re.escape(content) for content in sorted(contents, reverse=True))


def contains(texts: tf.Tensor, pattern: str) -> tf.Tensor:
    """Whether a pattern matches in a text, bool `[B]`."""
    # \C is a byte; a dot would stop at bytes that are not UTF-8.
    return tf.strings.regex_full_match(texts, rf"\C*(?:{pattern})\C*")
