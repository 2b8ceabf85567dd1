"""Decodes the logits of extractive question answering to answers in the context."""

from __future__ import annotations

from typing import NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf

# The logit of a position at which no answer may start or end; the sum of two is finite.
NEVER = -1e30
NONE = -1


class WindowSpans(NamedTuple):
    """The K best spans of each of W windows, in bytes of the context.

    Attributes:
        scores: float32 `[W, K]`, start logit plus end logit, best first; about `2 * NEVER` after the last span.
        starts: int32 `[W, K]`, or -1.
        ends: int32 `[W, K]`, or -1.
        no_answer_scores: float32 `[W]`, the score of [CLS].
    """

    scores: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    no_answer_scores: tf.Tensor


def decode_spans(
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    windows: dict[str, tf.Tensor],
    contexts: tf.Tensor,
    *,
    num_best: int = 20,
    max_answer_length: int = 30,
) -> dict[str, tf.Tensor]:
    """The best answers to each question, from all windows of its context.

    A span is a start token and an end token of the context in one window, the end not before the start. Its score is
    the sum of both logits. A span in two windows counts once, with its better score. The score of "no answer" is that
    of [CLS], in the window with the lowest. The probabilities are the softmax of the `num_best` best spans and "no
    answer".

    Args:
        start_logits: float `(windows, sequence)`.
        end_logits: float `(windows, sequence)`.
        windows: the output of `SpanPreprocessor`, of which `"rows"`, `"starts"` and `"ends"` are used.
        contexts: strings `(batch,)`, as given to the preprocessor.
        num_best: the number of spans to return.
        max_answer_length: the longest span, in tokens.

    Returns:
        A dictionary, the best span first:

        - `"answer"`: string `(batch, num_best)`, the bytes of the context; `""` after the last span;
        - `"score"`: float32 `(batch, num_best)`, probabilities, or -1;
        - `"start"`, `"end"`: int32 `(batch, num_best)`, bytes of the context, or -1;
        - `"no_answer_probability"`: float32 `(batch,)`;
        - `"no_answer_score"`: float32 `(batch,)`, the score of "no answer" minus that of the best span, for comparison
          with a threshold; 1e9 for a context without any token.

    Raises:
        TypeError, ValueError: `num_best` or `max_answer_length` is not an integer of at least 1.

    Examples:
        >>> windows = {"rows": [0], "starts": [[-1, -1, 0, 6, -1]], "ends": [[-1, -1, 5, 9, -1]]}
        >>> best = decode_spans(
        ...     [[1.0, 0, 4, 2, 0]], [[0.0, 0, 1, 3, 0]], windows, ["Hello you"], num_best=2, max_answer_length=2
        ... )
        >>> best["answer"].numpy().tolist(), best["start"].numpy().tolist(), best["no_answer_score"].numpy().tolist()
        ([[b'Hello you', b'Hello']], [[0, 0]], [-6.0])

    References:
        Devlin et al. 2018, arXiv:1810.04805, sections 4.2 and 4.3; `write_predictions` in google-research/bert
        `run_squad.py`; `postprocess_qa_predictions` in transformers' `utils_qa.py`. Both combine only the
        `num_best` starts and the `num_best` ends, which can miss a pair; this function compares all pairs.
    """
    checks.positive_integer("decode_spans", "num_best", num_best)
    checks.positive_integer("decode_spans", "max_answer_length", max_answer_length)
    starts, ends = tf.convert_to_tensor(windows["starts"]), tf.convert_to_tensor(windows["ends"])
    spans = best_spans(start_logits, end_logits, starts, ends, num_best=num_best, max_answer_length=max_answer_length)
    return merge_windows(spans, tf.convert_to_tensor(windows["rows"]), tf.convert_to_tensor(contexts, tf.string))


def best_spans(
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    starts: tf.Tensor,
    ends: tf.Tensor,
    *,
    num_best: int,
    max_answer_length: int,
) -> WindowSpans:
    """The `num_best` best spans of each window; the arguments are those of `decode_spans`."""
    start_logits, end_logits = tf.cast(start_logits, tf.float32), tf.cast(end_logits, tf.float32)
    is_context = starts != NONE  # [W, S]
    sequence = tf.shape(starts)[1]
    masked_ends = tf.pad(
        tf.where(is_context, end_logits, NEVER), [[0, 0], [0, max_answer_length - 1]], constant_values=NEVER
    )
    end_positions = tf.range(sequence)[:, None] + tf.range(max_answer_length)  # [S, L]
    scores = tf.where(is_context, start_logits, NEVER)[:, :, None] + tf.gather(masked_ends, end_positions, axis=1)
    scores = tf.reshape(scores, [-1, sequence * max_answer_length])  # [W, S * L]
    num_found = tf.minimum(num_best, sequence * max_answer_length)
    scores, pairs = tf.math.top_k(scores, num_found)  # [W, K]
    first = pairs // max_answer_length
    last = first + pairs % max_answer_length
    missing = [[0, 0], [0, num_best - num_found]]
    is_span = scores > NEVER / 2
    last = tf.where(is_span, last, 0)  # the others may end after the window
    return WindowSpans(
        tf.pad(scores, missing, constant_values=NEVER),
        tf.pad(tf.gather(starts, first, batch_dims=1), missing, constant_values=NONE),
        tf.pad(tf.gather(ends, last, batch_dims=1), missing, constant_values=NONE),
        start_logits[:, 0] + end_logits[:, 0],
    )


def merge_windows(spans: WindowSpans, rows: tf.Tensor, contexts: tf.Tensor) -> dict[str, tf.Tensor]:
    """Merges the spans of all windows of each context, and computes their probabilities.

    Args:
        spans: the best spans of all windows.
        rows: int32 `[W]`, the index of each window's context.
        contexts: strings `[B]`.

    Returns:
        What `decode_spans` returns.
    """
    num_rows = tf.size(contexts)
    scores, starts, ends = _best_of_rows(spans, rows, contexts)  # [B, K]
    is_span = scores > NEVER / 2
    no_answer_scores = tf.math.unsorted_segment_min(spans.no_answer_scores, rows, num_rows)  # [B]
    probabilities = tf.nn.softmax(tf.concat([scores, no_answer_scores[:, None]], axis=1))
    # A copy of the context for each of its answers would be large; the op broadcasts the single column.
    answers = tf.strings.substr(contexts[:, None], tf.maximum(starts, 0), ends - starts)
    return {
        "answer": answers,
        "score": tf.where(is_span, probabilities[:, :-1], NONE),
        "start": starts,
        "end": ends,
        "no_answer_probability": probabilities[:, -1],
        "no_answer_score": tf.minimum(no_answer_scores - scores[:, 0], 1e9),
    }


def _best_of_rows(spans: WindowSpans, rows: tf.Tensor, contexts: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Scores, starts and ends `[B, K]`, each span once."""
    num_rows, num_best = tf.size(contexts), spans.scores.shape[1]
    is_span = spans.scores > NEVER / 2  # [W, K]
    row = tf.boolean_mask(tf.broadcast_to(rows[:, None], tf.shape(is_span)), is_span)  # [N], here and below
    # One integer for row, start and end, because `tf.unique` takes single values.
    size = tf.cast(tf.reduce_max(tf.concat([tf.strings.length(contexts), [0]], 0)), tf.int64) + 1
    start, end = (tf.cast(tf.boolean_mask(side, is_span), tf.int64) for side in (spans.starts, spans.ends))
    different, index = tf.unique((tf.cast(row, tf.int64) * size + start) * size + end)  # [M] and [N]
    score = tf.math.unsorted_segment_max(tf.boolean_mask(spans.scores, is_span), index, tf.size(different))  # [M]
    order = tf.argsort(score, direction="DESCENDING", stable=True)
    row = tf.gather(different // size // size, order)
    by_row = tf.argsort(row, stable=True)
    order = tf.gather(order, by_row)
    row_splits = tf.searchsorted(tf.gather(row, by_row), tf.range(tf.cast(num_rows, tf.int64) + 1))

    def as_columns(values: tf.Tensor, default: float) -> tf.Tensor:
        ragged = tf.RaggedTensor.from_row_splits(tf.gather(values, order), row_splits, validate=False)
        return ragged[:, :num_best].to_tensor(default, shape=[None, num_best])

    return (
        as_columns(score, NEVER),
        as_columns(tf.cast(different // size % size, tf.int32), NONE),
        as_columns(tf.cast(different % size, tf.int32), NONE),
    )


def choose_answers(best: dict[str, tf.Tensor], threshold: float | None) -> dict[str, tf.Tensor]:
    """Chooses the answer to each question, or "" for no answer.

    Args:
        best: the output of `decode_spans`.
        threshold: there is no answer if `"no_answer_score"` is greater; None always answers.

    Returns:
        `"answer"`, `"score"`, `"start"`, `"end"` and `"no_answer_probability"`, `(batch,)` each. Without an
        answer, as for a context without any token: `""`, the probability of "no answer", -1 and -1.

    Examples:
        >>> windows = {"rows": [0], "starts": [[-1, -1, 0, -1]], "ends": [[-1, -1, 2, -1]]}
        >>> best = decode_spans([[3.0, 0, 1, 0]], [[0.0, 0, 1, 0]], windows, ["No"])
        >>> [choose_answers(best, threshold)["answer"].numpy().tolist() for threshold in (None, 0.5)]
        [[b'No'], [b'']]
    """
    is_empty = best["start"][:, 0] == NONE
    if threshold is not None:
        is_empty |= best["no_answer_score"] > threshold
    no_answer = best["no_answer_probability"]
    instead = {"answer": "", "score": no_answer, "start": NONE, "end": NONE}
    answer = {name: tf.where(is_empty, value, best[name][:, 0]) for name, value in instead.items()}
    return {**answer, "no_answer_probability": no_answer}
