"""Rows of ids from the tokens of texts, of pairs, and of windows over long texts, as ONNX operations."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_bert_layers.export.onnx._graph import FLOAT, INT32, INT64, Tensor
from keras_bert_layers.export.onnx._tokenizer_graph import Tokens, rows_of_splits, sums
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer

if TYPE_CHECKING:
    from keras_bert_layers.preprocessing.tokenizer import Tokenizer

NONE = -1

# Texts may share rows of so many tokens, where these are fewer in all than rows as wide as the longest text.
_SHARED = 128
# Added to the scores of tokens that are hidden.
FAR = np.float32(-1e30)


class Rows(NamedTuple):
    """What an encoder reads.

    Attributes:
        ids: int64 `[B, S]`.
        segments: int32 `[B, S]`; None if all are 0.
        mask: int32 `[B, S]`, 1 = real token.
    """

    ids: Tensor
    segments: Tensor | None
    mask: Tensor

    @property
    def num_tokens(self) -> Tensor:
        """How many tokens each row has, int32 `[B]`."""
        return self.mask.reduced("Sum", 1)

    def with_offset(self, offset: int) -> Tensor:
        """The positions of RoBERTa, int32 `[B, S]`: they begin at the offset, and the padding's id takes none."""
        is_padding = self.ids.equals(offset - 1)
        counted = (~is_padding).cast(INT32).cumsum(1)  # 1 for the first token
        return is_padding.where(offset - 1, counted + (offset - 1))


class PackedRows(NamedTuple):
    """R rows of width W that hold one long text, or several short ones side by side: little of them is padding.

    Attributes:
        ids: int64 `[R, W]`.
        segments: int32 `[R, W]`; None if all are 0.
        positions: int32 `[R, W]`, those of each token in its own text.
        bias: float32 `[R, 1, W, W]`, what hides the other texts of a row from a token.
        places: int64 `[B, S]`, where each token of each text is in the rows one after the other.
    """

    ids: Tensor
    segments: Tensor | None
    positions: Tensor
    bias: Tensor
    places: Tensor

    def unpacked(self, hidden: Tensor, width: int) -> Tensor:
        """What belongs to the tokens of each text `[B, S, H]`, of `[R, W, H]`."""
        return hidden.reshape(-1, width).take(self.places)


class Windows(NamedTuple):
    """W windows over texts.

    Attributes:
        rows: what the encoder reads.
        text_of: int64 `[W]`, the text that each window shows a part of.
        places: int64 `[W, S]`, the token of all texts at each position; -1 for special tokens and padding.
        firsts: int64 `[B + 1]`, where the windows of each text begin.
    """

    rows: Rows
    text_of: Tensor
    places: Tensor
    firsts: Tensor


def rows_of(tokens: list[Tokens], preprocessor: Any) -> Rows:
    """The rows of one text or two each, framed, truncated, and padded to the longest.

    Args:
        tokens: those of the texts, and of the other texts of pairs.
        preprocessor: a `BertPreprocessor`.
    """
    graph = tokens[0].ids.graph
    tokenizer, begins, counts = preprocessor.tokenizer, [each.begins for each in tokens], _kept(tokens, preprocessor)
    more = tokenizer.num_pair_separators - 1  # before the second text
    if preprocessor.truncation_side == "left":
        begins = [b + each.counts - count for b, each, count in zip(begins, tokens, counts, strict=True)]

    def one_row() -> list[Tensor]:
        row, segments = [graph.constant([tokenizer.start_id])], [graph.constant([0], INT32)]
        for segment, (each, begin, count) in enumerate(zip(tokens, begins, counts, strict=True)):
            end = graph.constant([tokenizer.separator_id])
            part = graph.concat([*[end] * (more * segment), each.ids.slice(begin, begin + count), end])
            row.append(part)
            segments.append(part.filled(segment, INT32))
        ids = graph.concat(row).column(0)
        found = [ids, ids.filled(1, INT32)]
        return found if len(tokens) == 1 else [*found, graph.concat(segments).column(0)]

    def several() -> list[Tensor]:
        columns = [count.column() for count in counts]  # [B, 1]
        width = sum(counts[1:], counts[0]).reduced("Max") + 1 + len(tokens) + more * (len(tokens) - 1)
        position = graph.range(width)  # [S]
        place, first, size = graph.constant(NONE), graph.constant(1), graph.constant(0)
        ends = []  # of each text, the position of the separator [B, 1]
        for begin, count, each in zip(begins, columns, tokens, strict=True):
            ends.append(first + count)
            is_inside = (position >= first) & (position < ends[-1])
            place = is_inside.where(begin.column() + size + position - first, place)
            first, size = ends[-1] + 1, size + each.ids.size()
            if more and len(ends) < len(tokens):
                ends.append(first)
                first = first + more
        is_end = functools.reduce(operator.or_, (position.equals(end) for end in ends))
        ids = _ids(graph.concat([each.ids for each in tokens]), place, position, is_end, tokenizer)
        found = [ids, (position < first).cast(INT32)]
        return found if len(tokens) == 1 else [*found, ((position > ends[-2]) & (position < first)).cast(INT32)]

    ids, mask, *segments = graph.choose(tokens[0].splits.size().equals(2), one_row, several)
    return Rows(ids, segments[0] if segments else None, mask)


def packed(rows: Rows, offset: int) -> PackedRows:
    """Rows of one text each as fewer rows: from the longest text on, each goes into the first row with room for it.

    Args:
        rows: the rows, which are padded to the longest.
        offset: the positions of RoBERTa begin at it; 0 for others.
    """
    graph, width = rows.ids.graph, rows.ids.size(1)
    positions = rows.with_offset(offset) if offset else graph.range(width).cast(INT32).column(0)  # [B or 1, S]

    def alone() -> list[Tensor]:
        sizes = graph.concat([graph.constant([1, 1]), _vector(width), _vector(width)])
        bias = graph.add("Expand", graph.constant(0, FLOAT), sizes)
        found = [rows.ids, positions, bias, graph.range(width).column(0)]
        return found if rows.segments is None else [*found, rows.segments]

    def several() -> list[Tensor]:
        lengths, wide = rows.num_tokens.cast(INT64), width * (graph.constant(_SHARED) // width).maximum(1)
        choices = [(*row_places(lengths, each), each) for each in (wide, width)]
        is_less = choices[0][1] * wide < choices[1][1] * width
        begins, num_rows, room = (is_less.where(one, other) for one, other in zip(*choices, strict=True))
        is_real, place = rows.mask > 0, begins.column() + graph.range(width)  # [B, S]
        size = num_rows * room
        target = is_real.where(place, size).reshape(-1)  # what pads goes behind the end
        blank = graph.add("Expand", graph.constant(NONE), _vector(size + 1))
        source = blank.scattered(target, graph.range(rows.ids.size())).slice(0, _vector(size)).reshape(num_rows, room)
        found = source.maximum(0)
        text = (source < 0).where(NONE, found // width)  # [R, W]
        bias = text.column(2).equals(text.column(1)).where(0, graph.constant(FAR, FLOAT)).column(1)
        own = positions.reshape(-1).take(found) if offset else (found - found // width * width).cast(INT32)
        result = [rows.ids.reshape(-1).take(found), own, bias, is_real.where(place, 0)]
        return result if rows.segments is None else [*result, rows.segments.reshape(-1).take(found)]

    ids, positions, bias, places, *segments = graph.choose(rows.ids.size(0).equals(1), alone, several)
    return PackedRows(ids, segments[0] if segments else None, positions, bias, places)


def row_places(lengths: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """Where texts begin in rows one after the other, int64 `[B]`, and the number of rows, an int64 scalar."""
    graph = lengths.graph
    ordered, order = graph.add("TopK", lengths, lengths.shape(), outputs=2)

    def step(room: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        """The room in each row `[B, 1]`, and the place `[1, 1]` of a text of this length `[1]`."""
        row = graph.add("ArgMax", (room >= length).cast(INT32), axis=0, keepdims=1, kind=INT64)
        before = graph.add("GatherElements", room, row)
        return room.scattered(row, before - length), row * width + (width - before)

    room = graph.add("Expand", width, lengths.shape()).column()
    begins = graph.scan(step, room, ordered.column(0)).reshape(-1)
    num_rows = (begins.reduced("Max") // width) + 1
    return begins.filled(0, INT64).scattered(order, begins), num_rows


def _vector(size: Tensor) -> Tensor:
    return size.column(0)


def _kept(tokens: list[Tokens], preprocessor: TextLayer) -> list[Tensor]:
    """How many tokens of each text are read, int64 `[B]` for the texts and for those of a pair."""
    room, lengths = preprocessor.max_length - 1 - len(tokens), [each.counts for each in tokens]
    if len(tokens) == 1:
        return [lengths[0].minimum(room)]
    room -= preprocessor.tokenizer.num_pair_separators - 1
    first, second = lengths
    if preprocessor.truncation != "longest_first":
        whole, other = (second, first) if preprocessor.truncation == "only_first" else (first, second)
        # An error, which names the node, for a text that must not be cut.
        is_too_long = (whole.reduced("Max") > room).cast(INT64)
        name = f"truncation={preprocessor.truncation}: the other text must have at most {room} tokens"
        rest = whole.graph.add("Gather", whole.graph.constant([room]), is_too_long, name=name) - whole
        other = other.minimum(rest)
        return [other, whole] if preprocessor.truncation == "only_first" else [whole, other]
    half: Any = room - room // 2
    if preprocessor.tokenizer.reference != "google":
        half = (first > second).where(half, first.filled(room // 2, INT64))
    return [first.minimum((room - second).maximum(half)), second.minimum((room - first).maximum(room - half))]


def windows_over(
    tokens: Tokens,
    room: Any,
    overlap: int,
    tokenizer: Tokenizer,
    *,
    questions: Tokens | None = None,
    counts: tuple[Tensor, ...] = (),
) -> Windows:
    """Windows over texts, each of which shares `overlap` tokens with the one before it.

    Args:
        tokens: those of the texts.
        room: how many tokens of a text fit into a window; an integer, or int64 `[B]`.
        overlap: less than `room`.
        tokenizer: what the special tokens are from.
        questions: what stands before each window of a text.
        counts: how many tokens of the texts and of the questions are read, int64 `[B]`; all if it is empty.
    """
    graph, (count, *before) = tokens.ids.graph, counts or (tokens.counts,)
    step = room - overlap
    num_windows = (count - room + (step - 1)).maximum(0) // step + 1  # [B]
    firsts = sums(num_windows)  # [B + 1]
    order = graph.range(num_windows.reduced("Sum"))
    text_of = rows_of_splits(firsts, order)  # [W]
    room, step = (value.take(text_of) if isinstance(value, Tensor) else value for value in (room, step))
    begin = (order - firsts.take(text_of)) * step  # [W]
    length = (count.take(text_of) - begin).minimum(room).column()  # [W, 1]
    begin = (tokens.begins.take(text_of) + begin).column()
    question = before[0].take(text_of).column() if before else None
    first = graph.constant([[1]]) if question is None else question + 1 + tokenizer.num_pair_separators
    last = first + length  # [W, 1]
    position = graph.range(last.reduced("Max") + 1)  # [S]
    is_inside = (position >= first) & (position < last)
    places = is_inside.where(begin + position - first, NONE)
    is_end, found, all_ids, segments = position.equals(last), places, tokens.ids, None
    mask = position <= last
    if questions is not None and question is not None:
        is_question = (position >= 1) & (position <= question)
        of_question = questions.begins.take(text_of).column() + position - 1 + tokens.ids.size()
        found, is_end = is_question.where(of_question, places), is_end | ((position > question) & (position < first))
        all_ids = graph.concat([tokens.ids, questions.ids])
        segments = (mask & (position >= first)).cast(INT32)
    ids = _ids(all_ids, found, position, is_end, tokenizer)
    return Windows(Rows(ids, segments, mask.cast(INT32)), text_of, places, firsts)


def _ids(ids: Tensor, places: Tensor, position: Tensor, is_end: Tensor, tokenizer: Tokenizer) -> Tensor:
    """The ids at some places, and special tokens where a place is -1."""
    constant = ids.graph.constant
    special = constant([tokenizer.pad_id, tokenizer.separator_id, tokenizer.start_id])
    all_ids = ids.graph.concat([ids, special])
    is_start = position.equals(0)
    of_special = is_start.where(NONE, is_end.where(constant(-2), -3))
    return all_ids.take((places < 0).where(of_special, places))
