"""Tags of words: of given words, or of the labelled spans of texts.

`as_words`, `as_tags` and `as_spans` check what a user gives, row by row, and make ragged columns of it. In graph,
`tags_of_words` and `tags_of_spans` turn these columns into one tag for each word that the model sees, and check what a
dataset gave.

Axes: B batch, U words that the model sees, W given words, E spans.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import check_in_graph
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Strings
from keras_bert_layers.preprocessing.preprocessors.word_aligner import NO_WORD, AlignedWords
from keras_bert_layers.preprocessing.tokens.tokens import rows_of
from keras_bert_layers.tag_scheme import NO_TAG, TagScheme
from keras_bert_layers.tasks.feeding.columns import column_values, first_part, is_dataset, is_ragged

IGNORED = NO_TAG
FAR = np.iinfo(np.int32).max


def holds_words(x: Any) -> bool:
    """Whether `x` is, or yields, rows of words rather than texts."""
    if is_dataset(x):
        return isinstance(first_part(x), tf.RaggedTensorSpec)
    rows = column_values(x)
    is_list = isinstance(rows, Sequence | np.ndarray) and len(rows) > 0
    return is_ragged(x) or (is_list and isinstance(rows[0], list | tuple | np.ndarray))


def check_words_dataset(owner: str, dataset: tf.data.Dataset) -> None:
    """Refuses a dataset that yields neither batches of words with tags nor of texts with spans; ValueError."""
    spec = dataset.element_spec
    x, y = (*spec, None)[:2] if isinstance(spec, tuple) else (spec, None)
    if isinstance(x, tf.RaggedTensorSpec):
        rank, num_labels, labels = 2, 1, (y,)
    else:
        rank, num_labels, labels = 1, 3, y if isinstance(y, tuple) else ()
    is_text = isinstance(x, tf.RaggedTensorSpec | tf.TensorSpec) and x.dtype == tf.string and x.shape.rank == rank
    has_labels = len(labels) == num_labels and all(isinstance(part, tf.RaggedTensorSpec) for part in labels)
    if not is_text or not (y is None or has_labels):
        rule = "yield `(words, tags)`, ragged `(batch, words)` both, or `(text, (starts, ends, labels))`, ragged spans"
        cure = "Rows of words become such batches by `dataset.ragged_batch(32)`."
        raise ValueError(checks.message(owner, "x", rule, spec, cure))


def as_words(owner: str, x: Any, *, first_row: int = 0) -> tf.RaggedTensor:
    """Rows of words as ragged strings `(rows, words)`; errors count rows from `first_row`.

    Raises:
        TypeError: a row that is not a list of strings; the message names it.
    """
    if is_ragged(x):
        return x
    rows = column_values(x)
    for number, row in enumerate(rows, start=first_row):
        if not isinstance(row, list | tuple | np.ndarray) or not all(isinstance(word, str | bytes) for word in row):
            raise TypeError(f"`{owner}`: words must be a list of strings. Received: {row!r} in row {number}.")
        checks.unicode_text(owner, " ".join(word for word in row if isinstance(word, str)), number)
    return _ragged([list(row) for row in rows], tf.string)


def as_tags(owner: str, y: Any, words: tf.RaggedTensor, tag_names: Sequence[str]) -> tf.RaggedTensor:
    """Rows of tag names or ids as ragged int32 `(rows, words)`, checked tag by tag.

    Raises:
        TypeError: a row that is not a list.
        ValueError: another number of rows or tags than of rows or words; an unknown tag.
    """
    if is_ragged(y):
        return y
    rows, lengths = column_values(y), words.row_lengths().numpy()
    _check_num_rows(owner, rows, len(lengths))
    ids: dict[Any, int] = {IGNORED: IGNORED}
    for tag_id, name in enumerate(tag_names):
        ids[name] = ids[tag_id] = tag_id
    found = []
    for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        if not isinstance(row, list | tuple | np.ndarray):
            cure = "Write `tags.split()`." if isinstance(row, str) else ""
            rule = "tags must be a list for each row of words"
            raise TypeError(checks.row_message(owner, rule, f"{row!r} in row {number}", cure))
        if len(row) != length:
            received = f"{length} words and {len(row)} tags in row {number}"
            raise ValueError(checks.row_message(owner, "there must be one tag for each word", received))
        tags = [tag.decode() if isinstance(tag, bytes) else tag for tag in row]
        for position, tag in enumerate(tags):
            if isinstance(tag, bool) or not isinstance(tag, str | Integral) or tag not in ids:
                rule = f"every tag must be one of {list(tag_names)}, or an index into this list"
                raise ValueError(checks.row_message(owner, rule, f"{tag!r} at word {position} of row {number}"))
        found.append([ids[tag] for tag in tags])
    return _ragged(found, tf.int32)


def as_spans(owner: str, y: Any, texts: Strings, labels: list[str]) -> tuple[tf.RaggedTensor, ...]:
    """Rows of `(start, end, label)` as ragged starts, ends and labels `(rows, spans)`, checked and in order.

    A row may be a dictionary of such a list, `"entities"`, as in the training data of spaCy.

    Raises:
        TypeError: a row that is not a list of such tuples.
        ValueError: another number of rows than of texts; a span that is empty, only whitespace, outside its text, or
            overlaps another; an unknown label.
    """
    if isinstance(y, tuple) and len(y) == 3 and all(is_ragged(part) for part in y):
        return y
    rows, texts = column_values(y), [text.decode() if isinstance(text, bytes) else text for text in np.asarray(texts)]
    _check_num_rows(owner, rows, len(texts))
    found = [
        _check_spans(owner, row, text, labels, number)
        for number, (row, text) in enumerate(zip(rows, texts, strict=True))
    ]
    return tuple(
        _ragged([[span[part] for span in row] for row in found], dtype)
        for part, dtype in enumerate((tf.int32, tf.int32, tf.string))
    )


def _check_spans(owner: str, row: Any, text: str, labels: list[str], number: int) -> list[tuple[int, int, str]]:
    def refuse(rule: str, received: object, error: type[Exception] = ValueError) -> Exception:
        # One tag per word is what most files hold, and goes with words.
        is_tags = isinstance(received, str) and error is TypeError
        cure = "For one tag per word, `x` must be lists of words: `text.split()`." if is_tags else ""
        return error(checks.row_message(owner, rule, f"{received!r} in row {number}", cure))

    row = row.get("entities") if isinstance(row, dict) else row
    if not isinstance(row, list | tuple):
        raise refuse("spans must be a list of (start, end, label) for each text", row, TypeError)
    for span in row:
        numbers = span[:2] if isinstance(span, list | tuple) and len(span) == 3 else [None]
        if not all(isinstance(value, Integral) and not isinstance(value, bool) for value in numbers):
            raise refuse("every span must be (start, end, label), two integers and a string", span, TypeError)
        start, end, label = span
        if label not in labels:
            raise refuse(f"every label must be one of {labels}", span)
        if not 0 <= start < end <= len(text):
            raise refuse(f"every span must lie in its text of {len(text)} characters and not be empty", span)
        if not text[start:end].strip():
            raise refuse("every span must hold more than whitespace", span)
    spans = sorted((int(start), int(end), label) for start, end, label in row)
    for before, span in itertools.pairwise(spans):
        if span[0] < before[1]:
            raise refuse("spans must not overlap", [before, span])
    return spans


def _check_num_rows(owner: str, rows: object, expected: int) -> None:
    if not isinstance(rows, Sequence | np.ndarray) or isinstance(rows, str | bytes):
        raise TypeError(checks.message(owner, "y", "be a list with one row for each row of x", type(rows)))
    if len(rows) != expected:
        raise ValueError(f"`{owner}`: `y` must have one row for each row of x. Received: {len(rows)} and {expected}.")


def _ragged(rows: Sequence[Sequence[Any]], dtype: tf.DType) -> tf.RaggedTensor:
    values = [value for row in rows for value in row]
    lengths = tf.constant([len(row) for row in rows], tf.int64, shape=[len(rows)])
    return tf.RaggedTensor.from_row_lengths(tf.constant(values, dtype, shape=[len(values)]), lengths, validate=False)


def begins_given_word(word_ids: tf.Tensor) -> tf.Tensor:
    """Whether each of the model's words `[B, U]` is the first part of a given word."""
    return (word_ids != _neighbour(word_ids, 0)) & (word_ids != NO_WORD)


def ends_given_word(word_ids: tf.Tensor) -> tf.Tensor:
    """Whether each of the model's words `[B, U]` is the last part of a given word."""
    return (word_ids != _neighbour(word_ids, 1)) & (word_ids != NO_WORD)


def tags_of_words(
    owner: str, tags: tf.RaggedTensor, word_ids: tf.Tensor, tag_names: Sequence[str], scheme: TagScheme
) -> tf.Tensor:
    """The tag of each of the model's words, int32 `[B, U]`, from the tags of given words, ragged `[B, (W)]`.

    The parts of a given word are one entity, or a part of one, if the word is: in BIO, the first has its tag, and the
    others are inside.
    """
    if tags.dtype == tf.string:
        tags = tags.with_flat_values(_indices_in(owner, "tag", tags.flat_values, list(tag_names)))
    ids = _check_ids_in_graph(owner, tf.cast(tags, tf.int32), word_ids, tag_names)
    given = tf.pad(ids.to_tensor(IGNORED), [[0, 0], [0, 1]], constant_values=IGNORED)  # at least one column
    given = tf.gather(given, tf.maximum(word_ids, 0), batch_dims=1)  # [B, U]
    found = _at(scheme.part_tags, tf.maximum(given, 0), begins_given_word(word_ids), ends_given_word(word_ids))
    return tf.where((word_ids == NO_WORD) | (given == IGNORED), IGNORED, found)


def tags_of_spans(
    owner: str, texts: tf.Tensor, spans: tuple[tf.RaggedTensor, ...], words: AlignedWords, scheme: TagScheme
) -> tf.Tensor:
    """The tag of each word of a text, int32 `[B, U]`, from spans in characters: starts, ends, labels, `[B, (E)]`.

    A word that shares a byte with a span belongs to it; the first such word begins the entity, and the last ends it.
    """
    starts, ends, labels = spans
    label_ids = _indices_in(owner, "label", labels.flat_values, scheme.labels)
    is_inside = tf.reduce_all(starts.flat_values >= 0)
    starts, ends = (_in_bytes(texts, offsets) for offsets in (starts, ends))
    in_order = tf.reduce_all((starts < ends).flat_values) & tf.reduce_all((starts[:, 1:] >= ends[:, :-1]).flat_values)
    rule = f"`{owner}`: the spans of a text must not be empty, and come in order without overlap."
    starts = check_in_graph(starts, is_inside & in_order, [rule]).to_tensor(FAR, shape=[None, None])
    starts = tf.pad(starts, [[0, 0], [0, 1]], constant_values=FAR)  # [B, E + 1]; the last one begins after all words
    ends = tf.pad(ends.to_tensor(FAR), [[0, 0], [0, 1]], constant_values=FAR)
    span = tf.searchsorted(ends, words.starts, side="right")  # [B, U], the first that ends after the word's start
    is_in = tf.gather(starts, span, batch_dims=1) < words.ends
    label = tf.pad(labels.with_flat_values(label_ids).to_tensor(0), [[0, 0], [0, 1]])
    label = tf.gather(label, span, batch_dims=1)
    span, label_in = tf.where(is_in, span, NO_WORD), tf.where(is_in, label, NO_WORD)
    is_first, is_last = span != _neighbour(span, 0), span != _neighbour(span, 1)
    tags = _at(scheme.span_tags, label, is_first, is_last, is_first & (label_in == _neighbour(label_in, 0)))
    return tf.where(words.word_ids == NO_WORD, IGNORED, tf.where(is_in, tags, scheme.outside))


def _neighbour(values: tf.Tensor, side: int) -> tf.Tensor:
    """The value before each of `[B, U]`, or after it with `side` 1; `NO_WORD` at the edge."""
    padded = tf.pad(values, [[0, 0], [1 - side, side]], constant_values=NO_WORD)
    return padded[:, 1:] if side else padded[:, :-1]


def _at(table: np.ndarray, *indices: tf.Tensor) -> tf.Tensor:
    """Looks up values of a table, by an index for each of its axes."""
    places = tf.zeros_like(indices[0], tf.int32)
    for size, index in zip(table.shape, indices, strict=True):
        places = places * size + tf.cast(index, tf.int32)
    return tf.gather(tf.constant(table.reshape(-1)), places)


def _check_ids_in_graph(
    owner: str, ids: tf.RaggedTensor, word_ids: tf.Tensor, tag_names: Sequence[str]
) -> tf.RaggedTensor:
    """The ids, after assertions in graph that each is valid and that there is one for each word."""
    values = ids.flat_values
    num_words, num_tags = tf.reduce_max(word_ids, axis=1) + 1, tf.cast(ids.row_lengths(), tf.int32)  # [B]
    rule = f"`{owner}`: there must be one tag for each word. Received, words and tags of each row: "
    ids = check_in_graph(ids, tf.reduce_all(num_tags == num_words), [rule, num_words, num_tags])
    rule = f"`{owner}`: every tag must be one of {list(tag_names)}, or an index into this list. Received: "
    is_tag = (values >= 0) & (values < len(tag_names)) | (values == IGNORED)
    return check_in_graph(ids, tf.reduce_all(is_tag), [rule, values])


def _indices_in(owner: str, what: str, values: tf.Tensor, names: Sequence[str]) -> tf.Tensor:
    """Strings as their indices in a list, int32."""
    matches = values[:, None] == tf.constant([list(names)])
    rule = f"`{owner}`: every {what} must be one of {list(names)}. Received: "
    matches = check_in_graph(matches, tf.reduce_all(tf.reduce_any(matches, axis=1)), [rule, values])
    return tf.argmax(matches, axis=1, output_type=tf.int32)


def _in_bytes(texts: tf.Tensor, offsets: tf.RaggedTensor) -> tf.RaggedTensor:
    """Offsets in characters, ragged `[B, (E)]`, as offsets in bytes; those behind the end of a text as its end."""
    text_bytes = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    begins = tf.where(tf.bitwise.bitwise_and(text_bytes, 0xC0) != 0x80)[:, 0]  # where each character does, and the end
    begins = tf.concat([begins, tf.size(text_bytes, tf.int64)[None]], 0)
    num_characters = tf.strings.length(texts, unit="UTF8_CHAR")
    rows = rows_of(offsets.row_splits)
    within = tf.clip_by_value(tf.cast(offsets.flat_values, tf.int32), 0, tf.gather(num_characters, rows))
    first = tf.gather(tf.cumsum(num_characters, exclusive=True), rows)
    in_bytes = tf.cast(tf.gather(begins, first + within), tf.int32)
    return offsets.with_flat_values(in_bytes - tf.gather(tf.cumsum(tf.strings.length(texts), exclusive=True), rows))
