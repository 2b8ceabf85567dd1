"""The tags of the words that the model sees, from the tags of given words or the spans in texts; in graph.

Axes: B batch, U words that the model sees, W given words, E spans.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_bert_layers._internal import bio_tags
from keras_bert_layers._internal.asserted import asserted
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.word_aligner import NO_WORD, AlignedWords

# The label of words that do not count, the same as in torch's cross entropy.
IGNORED = -100
FAR = np.iinfo(np.int32).max


def labels_of(tag_names: Sequence[str]) -> list[str]:
    """The labels of the entities, in the order of their first tags."""
    return list(dict.fromkeys(bio_tags.label_of(name) for name in tag_names if name != bio_tags.OUTSIDE))


def begins_given_word(word_ids: tf.Tensor) -> tf.Tensor:
    """Whether each of the model's words `[B, U]` is the first part of a given word."""
    before = tf.pad(word_ids, [[0, 0], [1, 0]], constant_values=NO_WORD)[:, :-1]
    return (word_ids != before) & (word_ids != NO_WORD)


def tags_of_words(owner: str, tags: tf.RaggedTensor, word_ids: tf.Tensor, tag_names: Sequence[str]) -> tf.Tensor:
    """The tag of each of the model's words, int32 `[B, U]`, from the tags of given words, ragged `[B, (W)]`.

    The first part of a given word has its tag. The other parts of a word in an entity are inside that entity.
    """
    if tags.dtype == tf.string:
        tags = tags.with_flat_values(_indices_in(owner, "tag", tags.flat_values, list(tag_names)))
    ids = _checked_ids(owner, tf.cast(tags, tf.int32), word_ids, tag_names)
    given = tf.pad(ids.to_tensor(IGNORED), [[0, 0], [0, 1]], constant_values=IGNORED)  # at least one column
    given = tf.gather(given, tf.maximum(word_ids, 0), batch_dims=1)  # [B, U]
    inside = [tag if tag == bio_tags.OUTSIDE else bio_tags.INSIDE + bio_tags.label_of(tag) for tag in tag_names]
    others = tf.where(given == IGNORED, IGNORED, tf.gather(_tag_ids(inside, tag_names), tf.maximum(given, 0)))
    found = tf.where(begins_given_word(word_ids), given, others)
    return tf.where(word_ids == NO_WORD, IGNORED, found)


def tags_of_spans(
    owner: str, texts: tf.Tensor, spans: tuple[tf.RaggedTensor, ...], words: AlignedWords, tag_names: Sequence[str]
) -> tf.Tensor:
    """The tag of each word of a text, int32 `[B, U]`, from spans in characters: starts, ends, labels, `[B, (E)]`.

    A word that shares a byte with a span belongs to it; the first such word begins the entity.
    """
    starts, ends, labels = spans
    names = labels_of(tag_names)
    label_ids = _indices_in(owner, "label", labels.flat_values, names)
    starts, ends = (_in_bytes(texts, offsets) for offsets in (starts, ends))
    in_order = tf.reduce_all((starts < ends).flat_values) & tf.reduce_all((starts[:, 1:] >= ends[:, :-1]).flat_values)
    rule = f"`{owner}`: the spans of a text must not be empty, and come in order without overlap."
    starts = asserted(starts, in_order, [rule]).to_tensor(FAR, shape=[None, None])
    starts = tf.pad(starts, [[0, 0], [0, 1]], constant_values=FAR)  # [B, E + 1]; the last begins after all words
    ends = tf.pad(ends.to_tensor(FAR), [[0, 0], [0, 1]], constant_values=FAR)
    span = tf.searchsorted(ends, words.starts, side="right")  # [B, U], the first that ends after the word's start
    is_in = tf.gather(starts, span, batch_dims=1) < words.ends
    before = tf.pad(tf.where(is_in, span, -1), [[0, 0], [1, 0]], constant_values=-1)[:, :-1]
    label = tf.pad(labels.with_flat_values(label_ids).to_tensor(0), [[0, 0], [0, 1]])
    label = tf.gather(label, span, batch_dims=1)
    first = _tag_ids([bio_tags.BEGIN + name for name in names], tag_names)
    inside = _tag_ids([bio_tags.INSIDE + name for name in names], tag_names)
    tags = tf.where(span == before, tf.gather(inside, label), tf.gather(first, label))
    tags = tf.where(is_in, tags, list(tag_names).index(bio_tags.OUTSIDE))
    return tf.where(words.word_ids == NO_WORD, IGNORED, tags)


def _tag_ids(tags: Sequence[str], tag_names: Sequence[str]) -> tf.Tensor:
    """The ids of tags, int32; `IGNORED` for one that is not among the names."""
    return tf.constant([list(tag_names).index(tag) if tag in tag_names else IGNORED for tag in tags], tf.int32)


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
