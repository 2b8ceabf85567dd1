"""`TextRules`: what a `BertTokenizer` does to text, as plain data for programs other than TensorFlow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.tables import SIGMA_MARKER, NormalizationTable
from keras_bert_layers.preprocessing.word_piece.normalizer import FINAL_SIGMA, SMALL_SIGMA, Normalizer
from keras_bert_layers.preprocessing.word_piece.pieces import boundaries, matchable

_SURROGATES = range(0xD800, 0xE000)
_NUM_CODES = 0x110000
# So many neighbouring characters with the same replacement are one range of a pattern, not entries of a table.
_LONG_RUN = 200
_SET_APART = r" \1 "


class TextRules(NamedTuple):
    """The steps from text to ids, in this order; words are then what stands between spaces.

    Args:
        replacements: character -> what replaces it. Characters that are not here stay as they are.
        dropped: characters that are dropped, for an RE2 character class: long ranges, which are not among the
            replacements.
        rewrites: RE2 patterns and what replaces them, one after the other.
        printable: each printable ASCII character -> what all of these make of it, whatever stands beside it.
        pieces: the pieces of words -> their ids, for the longest match first.
        max_word_length: a word of more characters becomes the unknown token.
    """

    replacements: dict[str, str]
    dropped: str
    rewrites: list[tuple[str, str]]
    printable: dict[str, str]
    pieces: dict[str, int]
    max_word_length: int


def text_rules(
    table: NormalizationTable, vocabulary: list[str], *, max_word_length: int, split_chinese: bool
) -> TextRules:
    """The rules of a tokenizer with this table."""
    _, kept = boundaries(table, split_chinese=split_chinese)
    characters = [chr(code) for code in range(_NUM_CODES) if code not in _SURROGATES]
    normalized = Normalizer(table).normalize(tf.constant(characters))
    set_apart = tf.strings.regex_replace(normalized, f"({kept})", _SET_APART)
    if table.final_sigma is None:
        sigmas, last = [], []
        normalized = set_apart
    else:  # which form a sigma has depends on what stands beside it, so nothing is set apart before
        sigmas = [(table.final_sigma, rf"\1{FINAL_SIGMA}\2"), (SIGMA_MARKER, SMALL_SIGMA)]
        last = [(f"({kept})", _SET_APART)]
    printable = {characters[code]: set_apart[code].numpy().decode() for code in range(0x20, 0x7F)}
    changed = {c: text.decode() for c, text in zip(characters, normalized.numpy(), strict=True) if text != c.encode()}
    # Stand-ins are in texts whose characters are replaced, so a pattern for these must not drop them.
    stand_ins = {chr(code) for code in table.stand_ins.values()}
    ranges = {"": "", _SET_APART: ""}
    for first, final, rewrite in list(_long_runs({c: text for c, text in changed.items() if c not in stand_ins})):
        ranges[rewrite] += rf"\x{{{first:X}}}-\x{{{final:X}}}"
        for code in range(first, final + 1):
            del changed[chr(code)]
    runs = [(f"([{ranges[_SET_APART]}])", _SET_APART)] if ranges[_SET_APART] else []
    tokens = itertools.islice(matchable(vocabulary, table, max_word_length), len(vocabulary))
    return TextRules(
        replacements=changed,
        dropped=ranges[""],
        rewrites=[*runs, *sigmas, *last],
        printable=printable,
        pieces={token: index for index, token in enumerate(tokens)},
        max_word_length=max_word_length,
    )


def _long_runs(changed: dict[str, str]) -> Iterator[tuple[int, int, str]]:
    """First and last code of long runs of characters that are all dropped, or all set apart, and the rewrite."""

    def kind(character: str) -> str | None:
        text = changed[character]
        return text if not text else _SET_APART if text == f" {character} " else None

    def run(place: tuple[int, str]) -> tuple[int, str | None]:
        return ord(place[1]) - place[0], kind(place[1])

    for (_, rewrite), members in itertools.groupby(enumerate(sorted(changed)), run):
        codes = [ord(character) for _, character in members]
        if rewrite is not None and len(codes) >= _LONG_RUN:
            yield codes[0], codes[-1], rewrite
