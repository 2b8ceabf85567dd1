"""Outputs to answers, as ONNX operations: entities, spans of contexts, and tokens for masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_bert_layers.export.onnx._encoder_graph import array
from keras_bert_layers.export.onnx._graph import BOOL, FLOAT, INT32, INT64, Answer, Tensor
from keras_bert_layers.export.onnx._rows_graph import NONE, Windows
from keras_bert_layers.export.onnx._tokenizer_graph import Characters, Tokens, sums
from keras_bert_layers.preprocessing.preprocessors.seen_text import (
    CONTROL,
    FLAG,
    JOINER,
    JOINS,
    PICTURE,
    PREPENDS,
    SPACE,
    SYLLABLE,
    SYLLABLE_PART,
    pattern_of,
)
from keras_bert_layers.tag_scheme import TagScheme

if TYPE_CHECKING:
    import keras

# The logit of a position at which no answer may start or end; the sum of two is finite.
_NEVER = -1e30
_LARGEST_SCORE = 1e9
_OF_KINDS = (JOINS, PREPENDS, JOINER, FLAG, PICTURE, SYLLABLE, SYLLABLE_PART)


def columns_of(rows: Tensor, num_rows: Tensor, width: Tensor | None = None) -> Tensor:
    """Where the values of each row are, if they stand one after the other, int64 `[rows, columns]`; -1 after them.

    Args:
        rows: the row of each value, ascending, int64 `[N]`.
        num_rows: a scalar.
        width: the number of columns, a scalar; None for that of the longest row.
    """
    graph = rows.graph
    zeros = graph.range(num_rows).filled(0, INT64)
    counts = zeros.scattered(rows, rows.filled(1, INT64), "add")
    position = graph.range(counts.reduced("Max") if width is None else width)
    place = sums(counts).slice(0, NONE).column() + position
    return (position < counts.column()).where(place, NONE)


def laid_out(values: Tensor, places: Tensor, default: object) -> Tensor:
    """The values at some places of `[N]`, and a default where a place is -1."""
    last = values.graph.constant([default], values.kind)
    return values.graph.concat([values, last]).take(places)


def substrings(characters: Characters, firsts: Tensor, lasts: Tensor) -> Tensor:
    """The strings from one character of a text to another, `[N]`; N may be 0."""
    graph = firsts.graph
    # One more, so that no reduction is over nothing.
    one = graph.constant([0])
    firsts, lasts = graph.concat([firsts, one]).column(), graph.concat([lasts, one]).column()
    position = firsts + graph.range((lasts - firsts).reduced("Max") + 1)  # [N + 1, L]
    texts = laid_out(characters.texts, (position <= lasts).where(position, NONE), "")
    return graph.text("StringJoin", texts, graph.constant([""]), graph.constant([1])).slice(0, NONE)


def in_sight(tokens: Tokens) -> Tokens:
    """Tokens whose first and last characters are what people see as one: `SeenText` as operations."""
    characters, firsts, lasts = tokens.characters, tokens.firsts, tokens.lasts
    graph, texts = firsts.graph, characters.texts

    def matches(pattern: str) -> Tensor:
        return graph.add("RegexFullMatch", texts, pattern=pattern, kind=BOOL)

    def seen() -> list[Tensor]:
        order, none = graph.range(texts.size()), graph.constant([False])
        row_starts = characters.splits.slice(0, NONE)
        # A text that a NUL ends at once has no characters, and may be the last one.
        begins = graph.concat([order.filled(0, INT64), graph.constant([0])])
        begins = begins.scattered(row_starts, row_starts.filled(1, INT64)).slice(0, NONE).cast(BOOL)
        of_kind = {kind: matches(pattern_of(kind)) for kind in _OF_KINDS}
        is_apart = matches(pattern_of(CONTROL | SPACE))

        def before(values: Tensor) -> Tensor:
            return graph.concat([none, values.slice(0, NONE)])

        begins_run = of_kind[FLAG] & ~(before(of_kind[FLAG]) & ~begins)
        first = graph.concat([graph.constant([0]), order.compress(begins_run, 0)])
        place = order - first.take(begins_run.cast(INT64).cumsum())
        is_second = (place - place // 2 * 2).equals(1)
        joins = of_kind[JOINS] & ~before(is_apart)
        joins = joins | (before(of_kind[PREPENDS]) & ~is_apart)
        for first, second in ((JOINER, PICTURE), (SYLLABLE, SYLLABLE_PART)):
            joins = joins | (before(of_kind[first]) & of_kind[second])
        joins = joins | (of_kind[FLAG] & is_second)
        is_first = begins | ~joins
        unit = is_first.cast(INT64).cumsum() - 1
        starts = order.compress(is_first, 0)
        after = graph.concat([starts, order.size().column(0)])
        return [starts.take(unit.take(firsts)), after.take(unit.take(lasts) + 1) - 1]

    is_joined = (~matches(r"[\x00-\x7f]*")).cast(INT64).reduced("Sum") > 0
    firsts, lasts = graph.choose(is_joined, seen, lambda: [firsts, lasts])
    return tokens._replace(firsts=firsts, lasts=lasts)


def argmax(scores: Tensor) -> Tensor:
    """The index of the first largest value along the last axis, int64."""
    return scores.graph.add("ArgMax", scores, axis=-1, keepdims=0, kind=INT64)


def softmax(logits: Tensor) -> Tensor:
    """Probabilities along the last axis."""
    return logits.graph.add("Softmax", logits, axis=-1)


def outputs_of_tokens(outputs: Tensor, tokens: Tokens, windows: Windows, room: int, overlap: int) -> Tensor:
    """The outputs for the tokens of texts, `[T, C]`, of those for windows, `[W, S, C]`.

    Each of two windows has half of the tokens that they share, as `WordAligner` takes them.
    """
    num_outputs = outputs.size(2)
    step, sequence, text_of = room - overlap, outputs.size(1), tokens.texts_of()
    position = outputs.graph.range(tokens.ids.size()) - tokens.splits.take(text_of)
    last = (windows.firsts.slice(1) - windows.firsts.slice(0, NONE) - 1).take(text_of)
    window = ((position - ((room + step) // 2 - step)).maximum(0) // step).minimum(last)
    place = (windows.firsts.take(text_of) + window) * sequence + position - window * step + 1  # after [CLS]
    return outputs.reshape(-1, num_outputs).take(place)


class Words:
    """The words of B texts, U of them, each made of one piece or several.

    Args:
        tokens: the pieces.
        continues: for each id, whether it continues the word before it.
        by_piece: whether each piece is a word.
    """

    def __init__(self, tokens: Tokens, continues: Sequence[bool], *, by_piece: bool = False):
        graph, self.tokens = tokens.ids.graph, tokens
        text_of, order = tokens.texts_of(), tokens.ids.graph.range(tokens.ids.size())
        self._begins = ~graph.constant(np.asarray(continues)).take(tokens.ids) | order.equals(
            tokens.splits.take(text_of)
        )
        self._begins = order >= 0 if by_piece else self._begins
        first = order.compress(self._begins, 0)
        end = graph.concat([first, order.size().column(0)]).slice(1)
        #: The text of each word, and its first and last character, int64 `[U]`.
        self.rows, self.firsts, self.lasts = text_of.take(first), tokens.firsts.take(first), tokens.lasts.take(end - 1)

    def tagged(self, logits: Tensor, aggregation: str) -> tuple[Tensor, Tensor]:
        """The tag of each word and its probability, from the logits of all pieces `[T, C]`."""
        if aggregation == "first":
            logits = logits.compress(self._begins, 0)
            return argmax(logits), softmax(logits).reduced("Max", -1)
        graph, probabilities = logits.graph, softmax(logits)
        word = self._begins.cast(INT64).cumsum() - 1  # [T]
        sizes = self.rows.filled(0, FLOAT).scattered(word, word.filled(1, FLOAT), "add").column()
        if aggregation == "average":
            zeros = probabilities.compress(self._begins, 0) * 0
            means = graph.add("ScatterND", zeros, word.column(), probabilities, reduction="add") / sizes
            return argmax(means), means.reduced("Max", -1)
        best = probabilities.reduced("Max", -1)
        scores = self.rows.filled(0, FLOAT).scattered(word, best, "max")
        order = graph.range(best.size())
        chosen = best.equals(scores.take(word)).where(order, best.size())
        chosen = (self.rows * 0 + best.size()).scattered(word, chosen, "min")
        return argmax(probabilities.take(chosen)), scores

    def best_rows(self, logits: Tensor, field: keras.layers.Layer) -> tuple[Tensor, Tensor]:
        """The tags of the most probable row of each text, and the probability of each, by a conditional field."""
        logits = logits.compress(self._begins, 0)
        num_rows = self.tokens.splits.size() - 1
        counts = logits.graph.range(num_rows).filled(0, INT64).scattered(self.rows, self.rows.filled(1, INT64), "add")
        places = columns_of(self.rows, num_rows, counts.reduced("Max").maximum(1))
        padded = logits.graph.concat([logits, logits.graph.constant(np.zeros([1, field.num_tags], np.float32))])
        is_word = places >= 0
        tags, scores = best_tags(field, padded.take(places), is_word)
        return tags.compress(is_word), scores.compress(is_word)


def entities(tags: Tensor, scores: Tensor, words: Words, scheme: TagScheme) -> dict[str, Answer]:
    """The answers of token classification: `decoding.decode_entities` as operations.

    Args:
        tags: int64 `[U]`, one for each word of all texts.
        scores: float32 `[U]`.
        words: the words.
        scheme: the meaning of the tags.
    """
    graph, tokens, rows, firsts, lasts = tags.graph, words.tokens, words.rows, words.firsts, words.lasts
    label = graph.constant(scheme.label_ids.astype(np.int64)).take(tags)
    tags_before, label_before, rows_before = (
        graph.concat([graph.constant([NONE]), each.slice(0, NONE)]) for each in (tags, label, rows)
    )
    continues_row = rows.equals(rows_before)
    is_first = graph.constant(scheme.begins).take(tags) | ~(continues_row & label.equals(label_before))
    is_first = is_first | (continues_row & graph.constant(np.append(scheme.ends, False)).take(tags_before))
    is_inside = label >= 0
    is_first = is_first & is_inside
    entity = (is_first.cast(INT64).cumsum() - 1).compress(is_inside, 0)
    num_entities = is_first.cast(INT64).reduced("Sum")
    zeros = graph.range(num_entities).filled(0, INT64)
    last = zeros.scattered(entity, lasts.compress(is_inside, 0), "max")
    totals = zeros.cast(FLOAT).scattered(entity, scores.compress(is_inside, 0), "add")
    sizes = zeros.scattered(entity, entity.filled(1, INT64), "add")
    first = firsts.compress(is_first, 0)
    places = columns_of(rows.compress(is_first, 0), tokens.splits.size() - 1)
    names = graph.constant(list(scheme.labels) or [""]).take(label.compress(is_first, 0))
    characters = tokens.characters
    found = {
        "entity_label": laid_out(names, places, ""),
        "entity_text": laid_out(substrings(characters, first, last), places, ""),
        "entity_start": laid_out(characters.starts.take(first).cast(INT32), places, NONE),
        "entity_end": laid_out(characters.ends.take(last).cast(INT32), places, NONE),
        "entity_score": laid_out(totals / sizes.cast(FLOAT), places, float(NONE)),
    }
    return {name: Answer(value, (None, None)) for name, value in found.items()}


def best_spans(
    logits: Tensor, windows: Windows, tokens: Tokens, *, num_best: int, max_answer_length: int
) -> dict[str, Tensor]:
    """The best answers to each question: `decoding.decode_spans` as operations.

    Args:
        logits: of starts and ends, float32 `[W, S, 2]`.
        windows: over the contexts.
        tokens: of the contexts.
        num_best: the number of spans to return.
        max_answer_length: the longest span, in tokens.
    """
    graph, characters, num_rows = logits.graph, tokens.characters, tokens.splits.size() - 1
    starts, ends = logits.take(0, 2), logits.take(1, 2)
    row, first, end, score = _spans_of_windows(
        starts, ends, windows, tokens, num_best=num_best, max_answer_length=max_answer_length
    )
    # One integer for row, start and end. One more row, with one span, so that nothing below is empty.
    longest = characters.ends.reduced("Max") + 1
    key = (row * longest + characters.starts.take(first)) * longest + characters.ends.take(end)
    key = graph.concat([key, (num_rows * longest * longest).column(0)])
    first, end = (graph.concat([each, graph.constant([0])]) for each in (first, end))
    score = graph.concat([score, graph.constant([_NEVER], FLOAT)])
    different, chosen, index, _ = graph.add("Unique", key, outputs=[INT64] * 4, sorted=0)
    best = different.filled(2 * _NEVER, FLOAT).scattered(index, score, "max")
    order = _by_row(different // longest // longest, best)
    rows = (different // longest // longest).take(order)
    places = columns_of(rows, num_rows + 1, graph.constant(num_best)).slice(0, NONE)
    chosen = chosen.take(order)
    first, end, best = first.take(chosen), end.take(chosen), best.take(order)
    scores = laid_out(best, places, _NEVER)  # [B, num_best]
    no_answer = graph.range(num_rows).filled(-_NEVER, FLOAT)
    of_windows = starts.take(0, 1) + ends.take(0, 1)
    no_answer = no_answer.scattered(windows.text_of, of_windows, "min")
    probabilities = softmax(graph.concat([scores, no_answer.column()], 1))
    return {
        "answer": laid_out(substrings(characters, first, end), places, ""),
        "score": (places >= 0).where(probabilities.slice(0, NONE, 1), NONE),
        "start": laid_out(characters.starts.take(first).cast(INT32), places, NONE),
        "end": laid_out(characters.ends.take(end).cast(INT32), places, NONE),
        "no_answer_probability": probabilities.take(NONE, 1),
        "no_answer_score": (no_answer - scores.take(0, 1)).minimum(_LARGEST_SCORE),
    }


def _by_row(rows: Tensor, scores: Tensor) -> Tensor:
    """The order of values from the first row to the last, and in a row from the highest score to the lowest."""
    count = rows.size().column(0)
    _, order = rows.graph.add("TopK", scores, count, outputs=[FLOAT, INT64])  # equal values keep their order
    _, by_row = rows.graph.add("TopK", rows.take(order), count, outputs=[INT64] * 2, largest=0)
    return order.take(by_row)


def _spans_of_windows(
    starts: Tensor, ends: Tensor, windows: Windows, tokens: Tokens, *, num_best: int, max_answer_length: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The best spans of each window: the row, the first and the last character, and the score of each `[spans]`."""
    graph = starts.graph
    is_context, sequence = windows.places >= 0, starts.size(1)
    starts_inside, ends_inside = is_context.where(starts, _NEVER), is_context.where(ends, _NEVER)
    after = graph.constant(np.array([0, 0, 0, max_answer_length - 1]))
    ends_inside = graph.add("Pad", ends_inside, after, graph.constant(_NEVER, FLOAT))
    last = graph.range(sequence).column() + graph.range(graph.constant(max_answer_length))  # [S, L]
    scores = (starts_inside.column(2) + ends_inside.take(last, 1)).reshape(-1, sequence * max_answer_length)
    size = (sequence * max_answer_length).minimum(num_best).column(0)
    scores, pairs = graph.add("TopK", scores, size, outputs=[FLOAT, INT64], axis=1)  # [W, K]
    is_span = scores > _NEVER / 2
    first_token = pairs // max_answer_length
    last_token = first_token + (pairs - first_token * max_answer_length)
    last_token = is_span.where(last_token, first_token)
    window = graph.range(windows.text_of.size()).column() * sequence
    all_places = windows.places.reshape(-1)
    row = windows.text_of.column() + is_span.cast(INT64) * 0  # [W, K]
    row, score = row.compress(is_span), scores.compress(is_span)
    first = tokens.firsts.take(all_places.take((window + first_token).compress(is_span)))
    end = tokens.lasts.take(all_places.take((window + last_token).compress(is_span)))
    return row, first, end, score


def chosen_answers(best: dict[str, Tensor], threshold: float | None) -> dict[str, Tensor]:
    """The answer to each question, or "" for none: `decoding.choose_answers` as operations."""
    is_empty = best["start"].take(0, 1) < 0
    if threshold is not None:
        is_empty = is_empty | (best["no_answer_score"] > threshold)
    no_answer = best["no_answer_probability"]
    instead = {"answer": "", "score": no_answer, "start": NONE, "end": NONE}
    found = {name: is_empty.where(value, best[name].take(0, 1)) for name, value in instead.items()}
    return {**found, "no_answer_probability": no_answer}


def best_tags(field: keras.layers.Layer, emissions: Tensor, is_word: Tensor) -> tuple[Tensor, Tensor]:
    """The best tags of words, int64 `[B, U]`, and the probability of each: those of a `ConditionalRandomField`.

    Args:
        field: the layer.
        emissions: the logits of words, float32 `[B, U, C]`.
        is_word: bool `[B, U]`.
    """
    graph, num_tags = emissions.graph, field.num_tags
    table = array(field.transition_scores("float32"))
    scores, ends = graph.constant(table), array(field.end_scores("float32"))
    following = graph.constant(table[:-1])
    first = emissions.take(0, 1)  # [B, C]
    start_row = argmax(first) * 0 + num_tags  # [B]

    def backward(reduction: str) -> Tensor:
        def step(after: Tensor, emission: Tensor, is_real: Tensor) -> tuple[Tensor, Tensor]:
            score = (following + (emission + after).column(1)).reduced(reduction, -1)  # [B, C]
            score = score - score.reduced("Max", -1, keepdims=True)
            return is_real.column().where(score, after), after

        return graph.scan(step, first * 0 + ends, emissions, is_word, reverse=True)

    def choose(previous: Tensor, score: Tensor, is_real: Tensor) -> tuple[Tensor, Tensor]:
        tag = argmax(scores.take(previous) + score)
        return is_real.where(tag, previous), is_real.where(tag, 0)

    def marginal(before: Tensor, logit: Tensor, is_real: Tensor) -> tuple[Tensor, Tensor]:
        followers = softmax(scores + logit.column(1))  # [B, C + 1, C]
        after = (before.column(1) @ followers).take(0, 1)  # [B, C]
        padded = graph.concat([after, after.slice(0, 1, 1) * 0], 1)
        return is_real.column().where(padded, before), after

    tags = graph.scan(choose, start_row, emissions + backward("Max"), is_word, axes=1)
    start = first * 0
    start = graph.concat([start, start.slice(0, 1, 1) + 1], 1)
    found = graph.scan(marginal, start, emissions + backward("LogSumExp"), is_word)
    chosen = graph.add("GatherElements", found, tags.column(2), axis=2).take(0, 2)
    return tags, is_word.where(chosen, 0)
