"""The tags of the words that the model sees, from the tags of given words or the spans in texts; in graph.

Axes: B batch, U words that the model sees, W given words, E spans.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_bert_layers._internal.asserted import asserted
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.tag_scheme import NO_TAG, TagScheme
from keras_bert_layers.preprocessing.word_aligner import NO_WORD, AlignedWords

IGNORED = NO_TAG
FAR = np.iinfo(np.int32).max


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
    ids = _checked_ids(owner, tf.cast(tags, tf.int32), word_ids, tag_names)
    given = tf.pad(ids.to_tensor(IGNORED), [[0, 0], [0, 1]], constant_values=IGNORED)  # at least one column
    given = tf.gather(given, tf.maximum(word_ids, 0), batch_dims=1)  # [B, U]
    found = _at(scheme.of_parts, tf.maximum(given, 0), begins_given_word(word_ids), ends_given_word(word_ids))
    return tf.where((word_ids == NO_WORD) | (given == IGNORED), IGNORED, found)


def tags_of_spans(
    owner: str, texts: tf.Tensor, spans: tuple[tf.RaggedTensor, ...], words: AlignedWords, scheme: TagScheme
) -> tf.Tensor:
    """The tag of each word of a text, int32 `[B, U]`, from spans in characters: starts, ends, labels, `[B, (E)]`.

    A word that shares a byte with a span belongs to it; the first such word begins the entity, and the last ends it.
    """
    starts, ends, labels = spans
    label_ids = _indices_in(owner, "label", labels.flat_values, scheme.labels)
    starts, ends = (_in_bytes(texts, offsets) for offsets in (starts, ends))
    in_order = tf.reduce_all((starts < ends).flat_values) & tf.reduce_all((starts[:, 1:] >= ends[:, :-1]).flat_values)
    rule = f"`{owner}`: the spans of a text must not be empty, and come in order without overlap."
    starts = asserted(starts, in_order, [rule]).to_tensor(FAR, shape=[None, None])
    starts = tf.pad(starts, [[0, 0], [0, 1]], constant_values=FAR)  # [B, E + 1]; the last begins after all words
    ends = tf.pad(ends.to_tensor(FAR), [[0, 0], [0, 1]], constant_values=FAR)
    span = tf.searchsorted(ends, words.starts, side="right")  # [B, U], the first that ends after the word's start
    is_in = tf.gather(starts, span, batch_dims=1) < words.ends
    label = tf.pad(labels.with_flat_values(label_ids).to_tensor(0), [[0, 0], [0, 1]])
    label = tf.gather(label, span, batch_dims=1)
    span, label_in = tf.where(is_in, span, NO_WORD), tf.where(is_in, label, NO_WORD)
    is_first, is_last = span != _neighbour(span, 0), span != _neighbour(span, 1)
    tags = _at(scheme.of_spans, label, is_first, is_last, is_first & (label_in == _neighbour(label_in, 0)))
    return tf.where(words.word_ids == NO_WORD, IGNORED, tf.where(is_in, tags, scheme.outside))


def _neighbour(values: tf.Tensor, side: int) -> tf.Tensor:
    """The value before each of `[B, U]`, or with `side` 1 after it; `NO_WORD` at the edge."""
    padded = tf.pad(values, [[0, 0], [1 - side, side]], constant_values=NO_WORD)
    return padded[:, 1:] if side else padded[:, :-1]


def _at(table: np.ndarray, *indices: tf.Tensor) -> tf.Tensor:
    """The values of a table at indices of its axes."""
    places = tf.zeros_like(indices[0], tf.int32)
    for size, index in zip(table.shape, indices, strict=True):
        places = places * size + tf.cast(index, tf.int32)
    return tf.gather(tf.constant(table.reshape(-1)), places)


def _checked_ids(owner: str, ids: tf.RaggedTensor, word_ids: tf.Tensor, tag_names: Sequence[str]) -> tf.RaggedTensor:
    """The ids, after assertions that each is valid and that there is one for each word."""
    values = ids.flat_values
    num_words, num_tags = tf.reduce_max(word_ids, axis=1) + 1, tf.cast(ids.row_lengths(), tf.int32)  # [B]
    rule = f"`{owner}`: there must be one tag for each word. Received, words and tags of each row: "
    ids = asserted(ids, tf.reduce_all(num_tags == num_words), [rule, num_words, num_tags])
    rule = f"`{owner}`: every tag must be one of {list(tag_names)}, or an index into this list. Received: "
    is_tag = (values >= 0) & (values < len(tag_names)) | (values == IGNORED)
    return asserted(ids, tf.reduce_all(is_tag), [rule, values])


def _indices_in(owner: str, what: str, values: tf.Tensor, names: Sequence[str]) -> tf.Tensor:
    """Strings as their indices in a list, int32."""
    matches = values[:, None] == tf.constant([list(names)])
    rule = f"`{owner}`: every {what} must be one of {list(names)}. Received: "
    matches = asserted(matches, tf.reduce_all(tf.reduce_any(matches, axis=1)), [rule, values])
    return tf.argmax(matches, axis=1, output_type=tf.int32)


def _in_bytes(texts: tf.Tensor, offsets: tf.RaggedTensor) -> tf.RaggedTensor:
    """Offsets in characters, ragged `[B, (E)]`, as offsets in bytes."""
    texts, ends = tf.gather(texts, offsets.value_rowids()), offsets.flat_values
    before = tf.strings.substr(texts, tf.zeros_like(ends), ends, unit="UTF8_CHAR")
    return offsets.with_flat_values(tf.strings.length(before))
