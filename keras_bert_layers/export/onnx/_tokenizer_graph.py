"""The tokenizer as ONNX operations: texts to ids, and where each token stands in its text.

The operations for BERT in onnxruntime-extensions follow neither reference. The ones used here are simpler, and follow
the same table of replacements as the tokenizer of this package: regular expressions first, then a lookup of every
character, then the pieces of words.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers.export.onnx._graph import BOOL, INT64, STRING, TABLES, Tensor
from keras_bert_layers.preprocessing.tokens.markers import SUFFIX

# Control characters, which both references drop, stand for special tokens that a text holds.
_MARKS = [chr(code) for code in (*range(0x01, 0x09), *range(0x0E, 0x20))]
# The last one ends a text.
_ROW_END = _MARKS.pop()
# The table of `StringMapping` is lines of two items, ended by NUL. So it has no blanks like tabs and no NUL, and a
# character that is dropped becomes another one, until all of those are dropped.
_BLANKS, _NUL, _DROPPED = "\t\n\r", "\x00", "\x7f"
# A byte that is in no text of UTF-8, and the bytes of the longest character.
_NO_CHARACTER, _LONGEST_CHARACTER = b"\xff", 4
# Characters that are cut off together. RE2 takes minutes for the texts of a few MB by a count of 1,000.
_BLOCK = "(?s:.{1,100})"


class Tokens(NamedTuple):
    """The tokens of B texts, all of them in one row.

    Attributes:
        ids: int64 `[T]`.
        splits: int64 `[B + 1]`, where the tokens of each text begin.
        characters: those of the texts, and which of them the tokens are made of, `firsts` and `lasts`, int64 `[T]`.
    """

    ids: Tensor
    splits: Tensor
    characters: Any = None
    firsts: Any = None
    lasts: Any = None

    def texts_of(self) -> Tensor:
        """The text that each token is in, int64 `[T]`."""
        order = self.ids.graph.range(self.ids.size())
        # Texts without tokens begin where the next one does.
        added = order.graph.concat([order.filled(0, INT64), order.graph.constant([0])])
        begins = self.begins
        return added.scattered(begins, begins.filled(1, INT64), "add").cumsum().take(order) - 1

    @property
    def begins(self) -> Tensor:
        """Where the tokens of each text begin, `[B]`."""
        return self.splits.slice(0, -1)

    @property
    def counts(self) -> Tensor:
        """How many tokens each text has, `[B]`."""
        return self.splits.slice(1) - self.begins


def counts_of(tokens: Tokens, token_id: int) -> Tensor:
    """How often a token is in each text, int64 `[B]`."""
    found = sums(tokens.ids.equals(token_id).cast(INT64))
    return found.take(tokens.splits.slice(1)) - found.take(tokens.begins)


class Characters(NamedTuple):
    """The characters of B texts, all of them in one row, and special tokens that are written in them.

    Attributes:
        texts: strings `[C]`.
        starts: int64 `[C]`, the byte of its text at which a character starts.
        ends: int64 `[C]`, the byte after it.
        splits: int64 `[B + 1]`, where the characters of each text begin.
    """

    texts: Tensor
    starts: Tensor
    ends: Tensor
    splits: Tensor


def split_characters(texts: Tensor, tokens: Iterable[str] = ()) -> Characters:
    """The characters of texts, of which each has one at least."""
    return _split_by(texts, "|".join([*map(re.escape, tokens), "(?s:.)"]))


def _split_by(texts: Tensor, expression: str) -> Characters:
    pattern = texts.graph.constant([f"({expression})"])
    kinds = [STRING, INT64, INT64, INT64]
    return Characters(*texts.graph.text("StringRegexSplitWithOffsets", texts, pattern, pattern, outputs=kinds))


class TokenizerGraph:
    """Adds the operations of one tokenizer to a graph.

    Args:
        tokenizer: a `BertTokenizer`.

    Raises:
        ValueError: it has added tokens that an ONNX file cannot hold.
    """

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer
        self._rules, marks = tokenizer.rules(), _marks(tokenizer)
        normalized = [token.content for token in tokenizer.written_tokens() if token.normalized]
        self._marks = {token: mark for token, mark in marks.items() if token not in normalized}
        # What a normalized token has become in a text of which each character is normalized, and what stands for it.
        forms = {token: "".join(self._rules.printable.get(each, "") for each in token) for token in normalized}
        self._normalized = {form: marks[token] for token, form in forms.items()}
        _check_apart(list(self._normalized), normalized)
        marked = {mark: tokenizer.token_to_id(token) for token, mark in marks.items()}
        self._pieces = {**self._rules.pieces, **marked}
        lengths = {mark: len(form.replace(" ", "")) for form, mark in self._normalized.items()}
        self._lengths = {**dict.fromkeys(self._marks.values(), 1), **lengths}

    def tokens(self, texts: Tensor, *, with_offsets: bool = False) -> Tokens:
        """The tokens of strings `[B]`."""
        rules, marks = self._rules, self._marks
        ended = _ended(texts, _dropped_if_any(texts))  # by a character which the branches drop
        by_length = sorted(marks, key=len, reverse=True)
        characters = split_characters(ended, by_length) if with_offsets else None

        def any_text() -> list[Tensor]:
            table = {**rules.replacements, **{token: f" {mark} " for token, mark in marks.items()}}
            found = split_characters(ended, by_length) if characters is None else characters
            mapped = _mapped(found.texts, table)
            rewrites = [(f"[{_BLANKS}]", " "), (f"[{_DROPPED}{rules.dropped}]", ""), *rules.rewrites]
            rewrites += [(_escaped(form), f" {mark} ") for form, mark in self._normalized.items()]
            text = _joined(mapped, found.splits)
            for pattern, rewrite in rewrites:
                text = _replaced(text, pattern, rewrite)
            return [text] if characters is None else [text, _lengths(mapped, rules.dropped)]

        def printable_text() -> list[Tensor]:
            has_cases = rules.printable["A"] == "a"
            found = ended.graph.text("StringLower", ended) if has_cases else ended
            apart = [character for character, text in rules.printable.items() if text == f" {character} "]
            text = _replaced(found, f"([{_escaped(apart)}])|{_DROPPED}", r" \1 ")
            return [text] if characters is None else [text, _lengths(characters.texts, "")]

        pattern = f"[{self._printable()}]*{_DROPPED}"
        is_printable = ended.graph.add("RegexFullMatch", ended, pattern=pattern, kind=BOOL)
        text, *lengths = texts.graph.choose(_holds_for_all(is_printable).cast(BOOL), printable_text, any_text)
        words, splits = _words(text, _zero_if_sound(text))
        (tokens, token_splits), unknown = self._split(words), self.tokenizer.unknown_id
        if characters is None:
            ids, token_splits = _whole_words(self._looked_up(tokens, self._pieces, unknown), token_splits, unknown)
            return Tokens(ids, token_splits.take(splits))
        places = {piece: place for place, piece in enumerate(self._pieces)}
        places.pop(self.tokenizer.special_tokens["unknown"], None)
        place, token_splits = _whole_words(self._looked_up(tokens, places, -1), token_splits, -1)
        is_unknown = place < 0
        graph = texts.graph
        ids = graph.constant([*self._pieces.values(), unknown]).take(place)
        sizes = [self._lengths.get(piece, len(piece.removeprefix(SUFFIX) or piece)) for piece in self._pieces]
        of_words = graph.text("StringLength", words, kind=INT64).take(rows_of_splits(token_splits, place))
        size = is_unknown.where(of_words, graph.constant([*sizes, 0]).take(place))
        return Tokens(ids, token_splits.take(splits), characters, *_sources(size, lengths[0]))

    def _printable(self) -> str:
        """The printable characters with which no added token begins, for a character class."""
        begins = {token[0] for token in self._marks}
        first = [form.strip()[0] for form in self._normalized]
        found = self._rules.printable.items()
        return _escaped(each for each, form in found if each not in begins and form.strip() not in first)

    def _split(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """The pieces of words, strings, and where those of each word begin.

        The operation leaves out rows without words. So every word is a row, and the rows of texts are found in these.
        """
        tokens, splits, _, _ = words.graph.text(
            "WordpieceTokenizer",
            words,
            words.graph.range(words.size() + 1),
            outputs=[STRING, INT64, INT64, INT64],
            vocab=json.dumps(self._pieces),
            suffix_indicator=SUFFIX,
            unknown_token=self.tokenizer.special_tokens["unknown"],
            max_input_chars_per_word=self._rules.max_word_length,
        )
        return tokens, splits

    def _looked_up(self, tokens: Tensor, table: dict[str, int], default: int) -> Tensor:
        keys, values = list(table), list(table.values())
        add = functools.partial(tokens.graph.add, "LabelEncoder", tokens, domain=TABLES, kind=INT64)
        return add(keys_strings=keys, values_int64s=values, default_int64=default)


def _sources(sizes: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The first and the last character that each token is made of, int64 `[T]`.

    Without blanks, the normalized texts are their tokens one after the other. So a token's characters are found by
    counting, and each of them comes from one character of the text.

    Args:
        sizes: the number of characters of each token, int64 `[T]`.
        lengths: how many characters of the normalized text, without blanks, each character has become, int64 `[C]`.
    """
    kept = lengths.graph.range(lengths.size()).compress(lengths > 0, 0)
    lengths = lengths.take(kept)
    source = kept.take(rows_of_splits(sums(lengths), lengths.graph.range(lengths.reduced("Sum"))))
    firsts = sizes.cumsum(exclusive=True)
    return source.take(firsts), source.take(firsts + sizes - 1)


def rows_of_splits(splits: Tensor, values: Tensor) -> Tensor:
    """The row that each of some values is in, int64 `[N]`; no row is empty."""
    starts = splits.slice(0, -1)
    return values.filled(0, INT64).scattered(starts, starts.filled(1, INT64)).cumsum() - 1


def _lengths(characters: Tensor, dropped: str) -> Tensor:
    """How many characters, without blanks and dropped ones, strings have."""
    kept = _replaced(characters, f"[ {_BLANKS}{_DROPPED}{dropped}]", "")
    return kept.graph.text("StringLength", kept, kind=INT64)


def _whole_words(ids: Tensor, splits: Tensor, unknown_id: int) -> tuple[Tensor, Tensor]:
    """The ids and splits of words of which one that has an unknown piece is one unknown token.

    The operation keeps the pieces before the unknown one.
    """
    is_unknown = ids.equals(unknown_id)

    def repaired() -> list[Tensor]:
        found = sums(is_unknown.cast(INT64))
        num_unknown = found.take(splits.slice(1)) - found.take(splits.slice(0, -1))
        starts = splits.slice(0, -1)
        is_start = ids.filled(0, INT64).scattered(starts, starts.filled(1, INT64))  # [T]
        is_lost = num_unknown.take(is_start.cumsum() - 1) > 0  # [T]
        stays = is_start.cast(BOOL) | ~is_lost
        kept = is_lost.where(unknown_id, ids).compress(stays, 0)
        return [kept, sums(stays.cast(INT64)).take(splits)]

    has_unknown = is_unknown.cast(INT64).reduced("Sum") > 0
    kept, places = ids.graph.choose(has_unknown, repaired, lambda: [ids, splits])
    return kept, places


def sums(values: Tensor) -> Tensor:
    """The sums of the first 0, 1, 2, ... values, `[N + 1]` of `[N]`."""
    return values.graph.concat([values.graph.constant([0]), values.cumsum()])


def _marks(tokenizer: Any) -> dict[str, str]:
    """The tokens that are found in a text, as it is written or normalized, and what stands for each."""
    tokens = tokenizer.written_tokens()
    others = [t.content for t in tokens if t.single_word or t.lstrip or t.rstrip or (t.normalized and not _is_plain(t))]
    if others:
        rule = (
            "hold no token that is a `single_word` or takes whitespace, nor a `normalized` one that is not of visible"
        )
        rule = f"{rule} characters of ASCII, in an ONNX file"
        raise ValueError(checks.message("export", "added_tokens", rule, others[:5], "Export a SavedModel."))
    if len(tokens) > len(_MARKS):
        rule = f"hold at most {len(_MARKS)} tokens in an ONNX file"
        raise ValueError(checks.message("export", "added_tokens", rule, len(tokens), "Export a SavedModel."))
    return {token.content: mark for token, mark in zip(tokens, _MARKS, strict=False)}


def _is_plain(token: Any) -> bool:
    """Whether normalization treats each character of a token by itself, and leaves one of each."""
    return all("!" <= character <= "~" for character in token.content)


def _check_apart(forms: list[str], contents: list[str]) -> None:
    """ValueError if a text can hold two normalized tokens that share characters: one after the other is looked for."""

    def share(one: str, other: str) -> bool:
        return other in one or any(one.endswith(other[:size]) for size in range(1, len(other)))

    found = [form.strip() for form in forms]
    is_clear = not any(share(one, other) for one, other in itertools.permutations(found, 2))
    if not is_clear or len(forms) < len(contents):
        rule = "hold no `normalized` tokens that overlap, in an ONNX file"
        raise ValueError(checks.message("export", "added_tokens", rule, contents[:5], "Export a SavedModel."))


def _replaced(texts: Tensor, pattern: str, rewrite: str) -> Tensor:
    constants = texts.graph.constant([pattern]), texts.graph.constant([rewrite])
    return texts.graph.text("StringRegexReplace", texts, *constants)


def _escaped(characters: Iterable[str]) -> str:
    return "".join(map(re.escape, characters))


def _holds_for_all(conditions: Tensor) -> Tensor:
    """1 if all of `[B]` are true, and 0 otherwise, int64."""
    return conditions.cast(INT64).reduced("Min")


def _mapped(characters: Tensor, table: dict[str, str]) -> Tensor:
    """Every character and every token looked up in a table."""
    lines = [f"{key}\t{text or _DROPPED}" for key, text in table.items() if key not in _BLANKS + _NUL]
    return characters.graph.text("StringMapping", characters, map="\n".join(lines))


def bounded(texts: Tensor, max_bytes: int) -> tuple[Tensor, Tensor]:
    """Texts `[B]` without what follows their first bytes, and how many bytes that is, int64 `[B]`.

    A text is cut after a whole character.
    """
    graph = texts.graph

    def cut() -> list[Tensor]:
        # A character of its own takes some 200 bytes, so what is far behind the end goes in blocks first.
        blocks = _split_by(_ended(texts, graph.constant(_DROPPED)), _BLOCK)
        sizes = blocks.ends.take(blocks.splits.slice(1) - 1) - 1  # without the character at the end
        near = (blocks.starts <= max_bytes).where(blocks.texts, "")
        found = split_characters(_joined(near, blocks.splits, _NO_CHARACTER))
        row = rows_of_splits(found.splits, found.ends)
        is_kept = (found.ends <= max_bytes) & (found.ends <= sizes.take(row))
        kept = sizes.filled(0, INT64).scattered(row, is_kept.where(found.ends, 0), "max")
        return [_joined(is_kept.where(found.texts, ""), found.splits, _NO_CHARACTER), (sizes - kept)]

    is_long = graph.text("StringLength", texts, kind=INT64).reduced("Max") * _LONGEST_CHARACTER > max_bytes
    found, lost = graph.choose(is_long, cut, lambda: [texts, graph.range(texts.size()).filled(0, INT64)])
    return found, lost


def _joined(parts: Tensor, splits: Tensor, row_end: str | bytes = _ROW_END) -> Tensor:
    """Texts `[B]` of their parts `[C]`, none of which has `row_end`."""
    graph = parts.graph
    none = graph.constant([""]), graph.constant([0])

    def one_text() -> list[Tensor]:
        return [graph.text("StringJoin", parts, *none)]

    def several() -> list[Tensor]:
        # All texts become one, with marks of their ends, which is split at these.
        last = splits.slice(1) - 1
        is_end = parts.filled(0, INT64).scattered(last, last.filled(1, INT64))
        ends = graph.constant(["", row_end]).take(is_end)
        text = graph.text("StringJoin", graph.add("StringConcat", parts, ends), *none)
        rows, _ = graph.add("StringSplit", text, outputs=[STRING, INT64], delimiter=row_end)  # [1, B + 1]
        return [rows.reshape(-1).slice(0, -1)]

    return graph.choose(splits.size().equals(2), one_text, several)[0]


def _ended(texts: Tensor, end: Tensor) -> Tensor:
    """Texts with a character at their end, so that every text has one.

    The operation that splits texts sees them up to the first NUL, and leaves out the rows of those that it sees empty.
    """
    return _replaced(texts.graph.add("StringConcat", texts, end), "^$", _DROPPED)


def _dropped_if_any(texts: Tensor) -> Tensor:
    """`_DROPPED`, or an error, which names this node, for a batch without texts: the reductions below have none."""
    row = texts.size().equals(0).cast(INT64)
    constant = texts.graph.constant([_DROPPED])
    return texts.graph.add("Gather", constant, row, name="the input must hold at least one text")


def _zero_if_sound(texts: Tensor) -> Tensor:
    """0, or an error, which names this node, if regular expressions have not dropped a character.

    That is so on Linux if TensorFlow is in the process before onnxruntime-extensions: both hold the library RE2, and
    the functions of the one are called with the objects of the other.
    """
    graph = texts.graph
    row = 1 - _holds_for_all(graph.add("RegexFullMatch", texts, pattern=f"[^{_DROPPED}]*", kind=BOOL))
    return graph.add("Gather", graph.constant([0]), row, name="import onnxruntime_extensions before tensorflow")


def _words(texts: Tensor, zero: Tensor) -> tuple[Tensor, Tensor]:
    """The words of all texts, strings `[W]`, and where each text's begin, int64 `[B + 1]`."""
    graph = texts.graph
    words, counts = graph.add("StringSplit", texts, outputs=[STRING, INT64])  # [B, most words], [B]
    places = graph.add("Range", zero, words.size(1), graph.constant(1))
    return words.compress(places < counts.column()), sums(counts)
