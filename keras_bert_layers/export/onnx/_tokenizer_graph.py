"""The tokenizer as ONNX operations: texts to rows of ids.

The operations for BERT in onnxruntime-extensions follow neither reference. The ones used here are simpler, and follow
the same table of replacements as the tokenizer of this package: regular expressions first, then a lookup of every
character, then the pieces of words.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.export.onnx._graph import BOOL, INT32, INT64, STRING, TABLES, Answer, Graph
from keras_bert_layers.preprocessing.tokens.markers import SUFFIX

# Control characters, which both references drop, stand for special tokens that a text holds.
_MARKS = [chr(code) for code in (*range(0x01, 0x09), *range(0x0E, 0x20))]
# The last one ends a text.
_ROW_END = _MARKS.pop()
# The table of `StringMapping` is lines of two items, ended by NUL. So it has no blanks like tabs and no NUL, and a
# character that is dropped becomes another one, until all of those are dropped.
_BLANKS, _NUL, _DROPPED = "\t\n\r", "\x00", "\x7f"


def token_rows(graph: Graph, texts: str, preprocessor: Any) -> tuple[str, str]:
    """The ids and the mask of texts, int64 and int32 `[batch, sequence]`, framed, truncated and padded.

    Args:
        graph: what the operations are added to.
        texts: the tensor of strings `[batch]`.
        preprocessor: a `BertPreprocessor`.
    """
    tokenizer = preprocessor.tokenizer
    ids, splits = _ids(graph, texts, tokenizer)
    longest = preprocessor.max_length - 2

    def one_row(graph: Graph) -> list[Answer]:
        start, last = graph.constant([tokenizer.start_id]), graph.constant([tokenizer.separator_id])
        read = graph.add("Slice", ids, graph.constant([0]), graph.constant([longest]))
        row = graph.add("Unsqueeze", graph.add("Concat", start, read, last, axis=0), graph.constant([0]))
        return _rows(row, graph.add("Expand", graph.constant(1, np.int32), graph.add("Shape", row)))

    def rows(graph: Graph) -> list[Answer]:
        return _rows(*_padded_rows(graph, ids, splits, tokenizer, longest))

    is_one = graph.add("Equal", graph.add("Size", splits), graph.constant(2))
    found = graph.choose(is_one, one_row, rows)
    return found[0], found[1]


def _rows(ids: str, mask: str) -> list[Answer]:
    return [Answer(ids, INT64, (None, None)), Answer(mask, INT32, (None, None))]


def _padded_rows(graph: Graph, ids: str, splits: str, tokenizer: Any, longest: int) -> tuple[str, str]:
    """Rows of ids as wide as the longest one, and their mask."""
    starts, ends = _between(graph, splits)  # [B]
    counts = graph.add("Min", graph.add("Sub", ends, starts), graph.constant(longest))
    width = graph.add("Add", graph.add("ReduceMax", counts, graph.constant([0]), keepdims=0), graph.constant(2))
    positions = _numbers(graph, width)  # [S]
    column = graph.constant([1])
    counts = graph.add("Unsqueeze", counts, column)  # [B, 1]
    # With one more id at the end, every index that is computed below exists.
    padded = graph.add("Concat", ids, graph.constant([0]), axis=0)
    place = graph.add("Add", graph.add("Unsqueeze", starts, column), positions)  # [B, S], one too far
    place = graph.add("Sub", place, graph.constant(1))
    last = graph.add("Sub", graph.add("Size", padded), graph.constant(1))
    place = graph.add("Max", graph.add("Min", place, last), graph.constant(0))
    rows = graph.add("Gather", padded, place)
    is_token = graph.add("LessOrEqual", positions, counts)
    is_end = graph.add("Equal", positions, graph.add("Add", counts, graph.constant(1)))
    behind = graph.add("Where", is_end, graph.constant(tokenizer.separator_id), graph.constant(tokenizer.pad_id))
    rows = graph.add("Where", is_token, rows, behind)
    is_start = graph.add("Equal", positions, graph.constant(0))
    rows = graph.add("Where", is_start, graph.constant(tokenizer.start_id), rows)
    mask = graph.add("Cast", graph.add("Or", is_token, is_end), to=INT32)
    return rows, mask


def _ids(graph: Graph, texts: str, tokenizer: Any) -> tuple[str, str]:
    """The ids of all texts, int64 `[T]`, and where each text's begin, int64 `[B + 1]`."""
    rules, marks = tokenizer.rules(), _marks(tokenizer)

    def any_text(graph: Graph) -> list[Answer]:
        table = {**rules.replacements, **{token: f" {mark} " for token, mark in marks.items()}}
        found = _mapped(graph, ended, table, sorted(marks, key=len, reverse=True))
        for pattern, rewrite in [(f"[{_BLANKS}]", " "), (f"[{_DROPPED}{rules.dropped}]", ""), *rules.rewrites]:
            found = _replaced(graph, found, pattern, rewrite)
        return [Answer(found, STRING, (None,))]

    def printable_text(graph: Graph) -> list[Answer]:
        has_cases = rules.printable["A"] == "a"
        found = graph.text("StringLower", ended) if has_cases else ended
        apart = [character for character, text in rules.printable.items() if text == f" {character} "]
        return [Answer(_replaced(graph, found, f"([{_escaped(apart)}])|{_DROPPED}", r" \1 "), STRING, (None,))]

    # With a character at its end, which the branches drop, every text has one.
    ended = graph.add("StringConcat", texts, _dropped_if_any(graph, texts))
    printable = _escaped(character for character in rules.printable if character not in {token[0] for token in marks})
    is_printable = _holds_for_all(graph, graph.add("RegexFullMatch", ended, pattern=f"[{printable}]*{_DROPPED}"))
    (texts,) = graph.choose(graph.add("Cast", is_printable, to=BOOL), printable_text, any_text)
    words, splits = _words(graph, texts, _zero_if_sound(graph, texts))
    pieces = {**rules.pieces, **{mark: tokenizer.token_to_id(token) for token, mark in marks.items()}}
    # The operation leaves out rows without words. So every word is a row, and the rows of texts are found among these.
    tokens, token_splits, _, _ = graph.text(
        "WordpieceTokenizer",
        words,
        _numbers(graph, graph.add("Add", graph.add("Size", words), graph.constant(1))),
        outputs=4,
        vocab=json.dumps(pieces),
        suffix_indicator=SUFFIX,
        unknown_token=tokenizer.special_tokens["unknown"],
        max_input_chars_per_word=rules.max_word_length,
    )
    ids = graph.add(
        "LabelEncoder",
        tokens,
        domain=TABLES,
        keys_strings=list(pieces),
        values_int64s=list(pieces.values()),
        default_int64=tokenizer.unknown_id,
    )
    ids, token_splits = _whole_words(graph, ids, token_splits, tokenizer.unknown_id)
    return ids, graph.add("Gather", token_splits, splits)


def _whole_words(graph: Graph, ids: str, splits: str, unknown_id: int) -> tuple[str, str]:
    """The ids and splits of words of which one that has an unknown piece is one unknown token.

    The operation keeps the pieces before the unknown one.
    """
    unknown, zero, one = (graph.constant(value) for value in (unknown_id, 0, 1))
    matches = graph.add("Cast", graph.add("Equal", ids, unknown), to=INT64)

    def repaired(graph: Graph) -> list[Answer]:
        starts, ends = _between(graph, splits)  # [W]
        sums = _sums(graph, matches)
        num_unknown = graph.add("Sub", graph.add("Gather", sums, ends), graph.add("Gather", sums, starts))
        zeros = graph.add("Expand", zero, graph.add("Shape", ids))
        ones = graph.add("Expand", one, graph.add("Shape", starts))
        is_start = graph.add("ScatterElements", zeros, starts, ones)  # [T]
        word_of = graph.add("Sub", graph.add("CumSum", is_start, zero), one)
        is_unknown = graph.add("Greater", graph.add("Gather", num_unknown, word_of), zero)  # [T]
        stays = graph.add("Or", graph.add("Cast", is_start, to=BOOL), graph.add("Not", is_unknown))
        kept = graph.add("Compress", graph.add("Where", is_unknown, unknown, ids), stays)
        places = graph.add("Gather", _sums(graph, graph.add("Cast", stays, to=INT64)), splits)
        return [Answer(kept, INT64, (None,)), Answer(places, INT64, (None,))]

    def as_they_are(graph: Graph) -> list[Answer]:
        return [Answer(graph.add("Identity", part), INT64, (None,)) for part in (ids, splits)]

    num_unknown = graph.add("ReduceSum", matches, keepdims=0)
    found = graph.choose(graph.add("Greater", num_unknown, zero), repaired, as_they_are)
    return found[0], found[1]


def _sums(graph: Graph, values: str) -> str:
    """The sums of the first 0, 1, 2, ... values, `[N + 1]` of `[N]`."""
    sums = graph.add("CumSum", values, graph.constant(0))
    return graph.add("Concat", graph.constant([0]), sums, axis=0)


def _between(graph: Graph, splits: str) -> tuple[str, str]:
    """Where each row begins and ends, `[N]` of `[N + 1]`."""
    first, last, axis = (graph.constant([value]) for value in (0, -1, 0))
    end = graph.constant([2**31 - 1])
    return graph.add("Slice", splits, first, last, axis), graph.add("Slice", splits, graph.constant([1]), end, axis)


def _numbers(graph: Graph, size: str) -> str:
    """0, 1, 2, ... `[size]`."""
    return graph.add("Range", graph.constant(0), size, graph.constant(1))


def _marks(tokenizer: Any) -> dict[str, str]:
    """The tokens that are found in the text as it is written, and what stands for each."""
    tokens = tokenizer.written_tokens()
    others = [t.content for t in tokens if t.single_word or t.lstrip or t.rstrip or t.normalized]
    if others:
        rule = "hold no token that is `normalized`, a `single_word` or takes whitespace, in an ONNX file"
        raise ValueError(checks.message("export", "added_tokens", rule, others[:5], "Export a SavedModel."))
    if len(tokens) > len(_MARKS):
        rule = f"hold at most {len(_MARKS)} tokens in an ONNX file"
        raise ValueError(checks.message("export", "added_tokens", rule, len(tokens), "Export a SavedModel."))
    return {token.content: mark for token, mark in zip(tokens, _MARKS, strict=False)}


def _replaced(graph: Graph, texts: str, pattern: str, rewrite: str) -> str:
    return graph.text("StringRegexReplace", texts, graph.constant([pattern]), graph.constant([rewrite]))


def _escaped(characters: Iterable[str]) -> str:
    return "".join(map(re.escape, characters))


def _holds_for_all(graph: Graph, conditions: str) -> str:
    """1 if all of `[B]` are true, and 0 otherwise, int64."""
    return graph.add("ReduceMin", graph.add("Cast", conditions, to=INT64), keepdims=0)


def _mapped(graph: Graph, texts: str, table: dict[str, str], tokens: list[str]) -> str:
    """The texts, of one character at least, with every character and every token looked up in a table."""
    parts = graph.constant(["(" + "|".join([*map(re.escape, tokens), "(?s:.)"]) + ")"])
    characters, _, _, splits = graph.text("StringRegexSplitWithOffsets", texts, parts, parts, outputs=4)
    lines = [f"{key}\t{text or _DROPPED}" for key, text in table.items() if key not in _BLANKS + _NUL]
    mapped = graph.text("StringMapping", characters, map="\n".join(lines))
    is_one = graph.add("Equal", graph.add("Size", splits), graph.constant(2))
    none = graph.constant([""]), graph.constant([0])

    def joined(graph: Graph) -> list[Answer]:
        return [Answer(graph.text("StringJoin", mapped, *none), STRING, (None,))]

    def joined_by_row(graph: Graph) -> list[Answer]:
        # All texts become one, with marks of their ends, which is split at these.
        last = graph.add("Sub", _between(graph, splits)[1], graph.constant(1))
        zeros = graph.add("Expand", graph.constant(0), graph.add("Shape", characters))
        ones = graph.add("Expand", graph.constant(1), graph.add("Shape", last))
        ends = graph.add("Gather", graph.constant(["", _ROW_END]), graph.add("ScatterElements", zeros, last, ones))
        text = graph.text("StringJoin", graph.add("StringConcat", mapped, ends), *none)
        rows, _ = graph.add("StringSplit", text, outputs=2, delimiter=_ROW_END)  # [1, B + 1]
        rows = graph.add("Reshape", rows, graph.constant([-1]))
        return [Answer(graph.add("Slice", rows, *map(graph.constant, ([0], [-1], [0]))), STRING, (None,))]

    return graph.choose(is_one, joined, joined_by_row)[0]


def _dropped_if_any(graph: Graph, texts: str) -> str:
    """`_DROPPED`, or an error, which names this node, for a batch without texts: the reductions below have none."""
    is_empty = graph.add("Cast", graph.add("Equal", graph.add("Size", texts), graph.constant(0)), to=INT64)
    return graph.add("Gather", graph.constant([_DROPPED]), is_empty, name="the input must hold at least one text")


def _zero_if_sound(graph: Graph, texts: str) -> str:
    """0, or an error, which names this node, if regular expressions have not dropped a character.

    That is so on Linux if TensorFlow is in the process before onnxruntime-extensions: both hold the library RE2, and
    the functions of the one are called with the objects of the other.
    """
    is_sound = _holds_for_all(graph, graph.add("RegexFullMatch", texts, pattern=f"[^{_DROPPED}]*"))
    row = graph.add("Sub", graph.constant(1), is_sound)
    return graph.add("Gather", graph.constant([0]), row, name="import onnxruntime_extensions before tensorflow")


def _words(graph: Graph, texts: str, zero: str) -> tuple[str, str]:
    """The words of all texts, strings `[W]`, and where each text's begin, int64 `[B + 1]`."""
    words, counts = graph.add("StringSplit", texts, outputs=2)  # [B, most words], [B]
    most = graph.add("Gather", graph.add("Shape", words), graph.constant(1))
    is_word = graph.add(
        "Less", graph.add("Range", zero, most, graph.constant(1)), graph.add("Unsqueeze", counts, graph.constant([1]))
    )
    flat = graph.add("Compress", words, is_word)
    return flat, _sums(graph, counts)
