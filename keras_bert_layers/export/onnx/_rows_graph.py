"""Rows of ids from the tokens of texts, of pairs, and of windows over long texts, as ONNX operations."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_bert_layers.export.onnx._graph import INT32, INT64, Tensor
from keras_bert_layers.export.onnx._tokenizer_graph import Tokens, rows_of_splits, sums
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer

if TYPE_CHECKING:
    from keras_bert_layers.preprocessing.tokenizer import Tokenizer

NONE = -1


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
