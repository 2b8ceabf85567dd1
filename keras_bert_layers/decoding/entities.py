"""Decodes the tags of words to entities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import bio_tags
from keras_bert_layers._internal.lazy import tf

NO_NUMBER = -1


def decode_entities(
    texts: Any, tags: Any, *, scores: Any, starts: Any, ends: Any, tag_names: Sequence[str]
) -> dict[str, tf.Tensor]:
    """Finds the named entities of each text from the tags of its words.

    A tag "B-person" starts an entity. "I-person" continues it; after "O" or another label it starts one too, as in
    conlleval and seqeval's default mode. An entity extends from the start of its first word to the end of its last, and
    its score is the mean score of its words.

    Args:
        texts: strings `(batch,)`.
        tags: int `(batch, words)`, indices into `tag_names`.
        scores: float `(batch, words)`, the score of each tag.
        starts: int `(batch, words)`, the byte of the text at which a word starts; -1 after a row's last word.
        ends: int `(batch, words)`, the byte after its last byte.
        tag_names: "O", "B-person", "I-person" and so on.

    Returns:
        Tensors `(batch, entities)`, with padding in rows with fewer entities: `"entity_label"` and `"entity_text"`,
        strings, padded with `""`; `"entity_start"` and `"entity_end"`, int32, bytes of the text, and `"entity_score"`,
        float32, padded with -1.

    Raises:
        TypeError, ValueError: names that are not tag names.

    Examples:
        >>> found = decode_entities(
        ...     ["in New York"], [[0, 1, 2]], scores=[[1.0, 0.9, 0.7]], starts=[[0, 3, 7]], ends=[[2, 6, 11]],
        ...     tag_names=["O", "B-place", "I-place"]
        ... )
        >>> found["entity_label"].numpy().tolist(), found["entity_text"].numpy().tolist()
        ([[b'place']], [[b'New York']])

    References:
        Tjong Kim Sang and De Meulder 2003, https://aclanthology.org/W03-0419, section 2.3.
    """
    names = bio_tags.check_tag_names("decode_entities", tag_names)
    labels = sorted({bio_tags.label_of(name) for name in names} - {""})
    label_ids = np.array([labels.index(bio_tags.label_of(name)) if name != bio_tags.OUTSIDE else -1 for name in names])
    begins = np.array([name.startswith(bio_tags.BEGIN) for name in names])

    starts, tags = tf.convert_to_tensor(starts, tf.int32), tf.convert_to_tensor(tags, tf.int32)
    label = tf.where(starts == NO_NUMBER, -1, tf.gather(tf.constant(label_ids, tf.int32), tags))  # [B, U]
    before = tf.pad(label, [[0, 0], [1, 0]], constant_values=-1)[:, :-1]
    is_first = (label >= 0) & (tf.gather(tf.constant(begins), tags) | (label != before))
    entity = tf.cumsum(tf.cast(tf.boolean_mask(is_first, label >= 0), tf.int32)) - 1  # [words in entities]
    num_entities = tf.reduce_sum(tf.cast(is_first, tf.int32))

    def of_words(values: Any, dtype: tf.DType) -> tf.Tensor:
        return tf.boolean_mask(tf.convert_to_tensor(values, dtype), label >= 0)

    rows = tf.where(is_first)[:, 0]
    start = tf.boolean_mask(starts, is_first)
    end = tf.math.unsorted_segment_max(of_words(ends, tf.int32), entity, num_entities)
    score = tf.math.unsorted_segment_mean(of_words(scores, tf.float32), entity, num_entities)
    texts = tf.convert_to_tensor(texts, tf.string)

    def by_text(values: tf.Tensor, padding: Any) -> tf.Tensor:
        ragged = tf.RaggedTensor.from_value_rowids(values, rows, nrows=tf.size(texts, tf.int64), validate=False)
        return ragged.to_tensor(padding)

    start, end = by_text(start, NO_NUMBER), by_text(end, NO_NUMBER)  # [B, entities]
    return {
        "entity_label": by_text(tf.gather(tf.constant(labels), tf.boolean_mask(label, is_first)), ""),
        # The op broadcasts the single column: no text is copied for each of its entities.
        "entity_text": tf.strings.substr(texts[:, None], tf.maximum(start, 0), end - start),
        "entity_start": start,
        "entity_end": end,
        "entity_score": by_text(score, float(NO_NUMBER)),
    }
