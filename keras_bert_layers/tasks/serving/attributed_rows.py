"""What `attribute` explains of each task: rows of tokens, from columns of texts and a target for each row.

Axes: S sequence.
"""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Columns, Strings
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.preprocessing.preprocessors.seen_text import seen_spans, seen_tokens
from keras_bert_layers.preprocessing.preprocessors.windows import NO_OFFSET
from keras_bert_layers.preprocessing.tokenizer import Tokenizer
from keras_bert_layers.tasks.feeding.columns import as_tuple, on_host
from keras_bert_layers.tasks.feeding.cut_texts import look_for_cuts
from keras_bert_layers.tasks.inputs.tags import begins_given_word

# Above all ids of tokens.
_FIRST_NUMBER = 2**30
# What `HeadTail` and `Windows` read of a preprocessor, beside its tokenizer.
_READ_BY_RULES = ("max_length", "truncation", "truncation_side", "framed", "truncated")

#: For each row, the arrays `IDS`, `"starts"`, `"ends"` and `"begins_word"`, int `[S]`; the targets, as in `integral`;
#: and their name. Under a rule for long texts, `IDS` and `"places"` are `[windows, S]`, and `"tokens"` and the others
#: `[tokens]`: the places are those of a window's tokens in the tokens of the whole text, or -1. Beside columns,
#: `"columns"` are the encoded features, float32 `[features]`.
Rows = Iterator[tuple[dict[str, np.ndarray], list[Any], str]]
#: From a task, columns of texts and a target for each row to `Rows`.
RowsOf = Callable[[Any, Any, list[Any]], Rows]


def readable(tokenizer: Tokenizer, ids: np.ndarray) -> list[str]:
    """The tokens of ids as people read them."""
    return [tokenizer.readable(tokenizer.id_to_token(int(token_id))) for token_id in ids]


def by_words(
    tokenizer: Tokenizer, ids: np.ndarray, is_text: np.ndarray, begins: np.ndarray, scores: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """The words of a row of tokens, and the sums of the scores of their tokens.

    Args:
        tokenizer: what the tokens are of.
        ids: int `(tokens,)`.
        is_text: whether each token is of a text, and no special one.
        begins: whether it begins a word; what goes on after a special token begins one too.
        scores: float `(tokens,)`.
    """
    is_first = is_text & (begins | ~np.roll(is_text, 1))
    numbers = np.cumsum(is_first)[is_text] - 1
    words = tokenizer.detokenize(tf.RaggedTensor.from_value_rowids(ids[is_text], numbers)).numpy()
    return [word.decode().strip() for word in words], np.bincount(numbers, scores[is_text], minlength=len(words))


def class_rows(task: keras.Model, columns: Any, wanted: list[Any]) -> Rows:
    """The rows of a classifier or a cross encoder."""
    checks.instance(type(task).__name__, "backbone", task.backbone, BertBackbone)
    look_for_cuts(task.pipeline, columns)
    read = task.pipeline.read_together(columns)
    beside = {name: np.asarray(values) for name, values in task.pipeline.beside(columns).items()}
    if task.long_texts is None:
        inputs = on_host(functools.partial(task.preprocessor.with_offsets, prompt=task.pipeline.prompt), read)
    names = class_names(task)
    indices = {key: index for index, name in enumerate(names) for key in (name, index)}
    highest = task.predict(columns, verbose=0).argmax(axis=-1).tolist() if None in wanted else wanted
    for row, target in enumerate(wanted):
        given = highest[row] if target is None else target
        index = indices[checks.one_of(type(task).__name__, "target", given, indices)]
        if task.long_texts is not None:
            found = _read_long(task, [column[row : row + 1] for column in as_tuple(read)])
        else:
            found = {name: values[row].numpy() for name, values in inputs.items()}
        yield {**found, **{name: values[row] for name, values in beside.items()}}, [index], names[index]


def _read_long(task: keras.Model, texts: list[Any]) -> dict[str, np.ndarray]:
    """A text, or a pair, as the rule for long texts reads it; see `Rows`."""
    preprocessor, prompt = task.preprocessor, task.pipeline.prompt
    tokenizer, texts = preprocessor.tokenizer, [tf.constant(text, tf.string) for text in texts]
    texts[0] = tf.strings.join([prompt, texts[0]])

    def numbered(text: tf.Tensor) -> tf.RaggedTensor:
        return tf.cast(tf.ragged.range(tokenizer.tokenize(text).row_lengths()), tf.int32) + _FIRST_NUMBER

    # The rule lays the numbers of tokens in their text just as it lays their ids.
    numbering = types.SimpleNamespace(tokenize=numbered, num_pair_separators=tokenizer.num_pair_separators)
    same = {name: getattr(preprocessor, name) for name in _READ_BY_RULES}
    read = tuple(texts) if len(texts) > 1 else texts[0]
    numbers = task.long_texts(types.SimpleNamespace(tokenizer=numbering, **same), read)["token_ids"].numpy()
    is_token = numbers >= _FIRST_NUMBER
    text_of = np.minimum(np.cumsum(~is_token, axis=1) - 1, len(texts) - 1)  # of a token, by the special ones before it
    rows, places = [np.array([[tokenizer.start_id, *[NO_OFFSET] * 3]])], np.full_like(numbers, -1)
    for number, text in enumerate(texts):
        seen = seen_tokens(tokenizer, text)
        found = np.stack([part.numpy() for part in (seen.ids.values, seen.starts, seen.ends, seen.begins)], axis=1)
        is_own = is_token & (text_of == number)
        shown, order = np.unique(numbers[is_own] - _FIRST_NUMBER, return_inverse=True)
        places[is_own] = sum(map(len, rows)) + order
        offsets = found[shown, 1:3] - (0 if number else len(prompt.encode()))
        offsets = np.where(offsets[:, :1] < 0, NO_OFFSET, offsets)
        num_separators = 1 if number == len(texts) - 1 else tokenizer.num_pair_separators
        separators = [[tokenizer.separator_id, *[NO_OFFSET] * 3]] * num_separators
        rows += [np.column_stack([found[shown, 0], offsets, found[shown, 3]]), np.array(separators)]
    tokens, starts, ends, begins = np.concatenate(rows).astype(np.int32).T
    windows = {name: values.numpy() for name, values in task.long_texts(preprocessor, read).items()}
    return {**windows, "places": places, "tokens": tokens, "starts": starts, "ends": ends, "begins_word": begins}


def class_names(task: keras.Model) -> list[str]:
    """A name for each logit of a classifier or a cross encoder."""
    return task.label_kind.answers if task.output.shape[-1] > 1 else ["score"]


def span_rows(task: keras.Model, columns: Any, wanted: list[Any]) -> Rows:
    """The windows of a question answerer that hold the best spans."""
    windows = {name: np.asarray(values) for name, values in on_host(task.preprocessor.with_words, columns).items()}
    of_window = windows.pop("rows")
    for row, logits in enumerate(task.predict_stream(columns)):
        checks.one_of(type(task).__name__, "target", wanted[row], [None])
        start, end = logits["start_logits"], logits["end_logits"]
        of_row, width = np.flatnonzero(of_window == row), start.shape[1]
        is_context = windows["starts"][of_row, :width] >= 0
        length = np.arange(width) - np.arange(width)[:, None]  # from a start (rows) to an end (columns)
        is_span = is_context[:, :, None] & is_context[:, None] & (length >= 0) & (length < task.max_answer_length)
        spans = np.where(is_span, start[:, :, None] + end[:, None], -np.inf)
        window, first, last = np.unravel_index(spans.argmax(), spans.shape)  # [CLS] in a context without tokens
        one = {name: values[of_row[window]] for name, values in windows.items()}
        places = np.flatnonzero(one["starts"] >= 0)
        context, own = tf.constant([columns[1][row]]), (one[side][places] for side in ("starts", "ends"))
        *seen, is_seen = seen_spans(task.preprocessor.tokenizer, context, np.zeros(len(places), np.int32), *own)
        for side, found in zip(("starts", "ends"), seen, strict=True):
            one[side] = one[side].copy()
            one[side][places[is_seen]] = found[is_seen]
        # The end's logits come first.
        yield one, [last, first], _part(columns[1][row], max(one["starts"][first], 0), max(one["ends"][last], 0))


def tag_rows(task: keras.Model, columns: Columns, wanted: list[Any]) -> Rows:
    """The windows of a token classifier in which words have most context."""
    pieces = on_host(task.pipeline.aligner().align_pieces, *task.pipeline.answer_columns(columns))
    places, word_ids, starts, ends = (part.numpy() for part in pieces[1:5])
    inputs = {name: values.numpy() for name, values in pieces.inputs.items()}
    begins = begins_given_word(pieces.word_ids).numpy()
    # Tokens that another window shows with more context have words by their ids.
    inputs["begins_word"] = ~np.array(task.preprocessor.tokenizer.continues_word())[inputs["token_ids"]]
    inputs["starts"], inputs["ends"] = np.full([2, *inputs["token_ids"].shape], -1, np.int32)
    for name, values in (("starts", starts), ("ends", ends), ("begins_word", begins)):
        # Of the pieces of one token, the first counts.
        inputs[name].flat[places[places >= 0][::-1]] = values[places >= 0][::-1]
    shares = np.array(keras.ops.softmax(task.predict(columns, verbose=0)))
    shares[..., [name == "O" for name in task.tag_names]] = 0
    for row, given in enumerate(wanted):
        count = word_ids[row].max() + 1
        pairs = list(itertools.product(range(count), task.tag_names))
        target = pairs[shares[row, :count].argmax()] if given is None and pairs else given
        if target not in pairs:
            rule = f"be the index of one of the {count} words of row {row}, and one of {task.tag_names}"
            raise ValueError(checks.message(type(task).__name__, "target", rule, target))
        of_word = np.flatnonzero(word_ids[row] == target[0])
        window, position = divmod(places[row, of_word[0]], inputs["token_ids"].shape[1])
        word = _part(columns[row], starts[row, of_word[0]], ends[row, of_word[-1]])
        index = position * len(task.tag_names) + task.tag_names.index(target[1])
        yield {name: values[window] for name, values in inputs.items()}, [index], f"{target[1]}: {word}"


def _part(text: Strings, start: int, end: int) -> str:
    """The part of a text between two bytes."""
    return (text if isinstance(text, bytes) else str(text).encode())[start:end].decode(errors="replace")
