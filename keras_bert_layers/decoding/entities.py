"""Decodes the tags of words to named entities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.tag_scheme import tag_scheme

NO_NUMBER = -1


def decode_entities(
    texts: Any,
    tags: Any,
    *,
    scores: Tensor,
    starts: Tensor,
    ends: Any,
    tag_names: Sequence[str],
    scheme: str | None = None,
) -> dict[str, tf.Tensor]:
    """Finds the named entities of each text from the tags of its words.

    A tag "B-person" or "S-person" starts an entity. "I-person", "E-person" or "person" continues it; after "O", another
    label, an "E-" or an "S-" it starts one too, as in conlleval and seqeval's default mode. An entity extends from the
    start of its first word to the end of its last, and its score is the mean score of its words. Where tags do not
    mark spans, such as parts of speech, every word is an entity.

    Args:
        texts: strings `(batch,)`.
        tags: int `(batch, words)`, indices into `tag_names`.
        scores: float `(batch, words)`, the score of each tag.
        starts: int `(batch, words)`, the byte of the text at which a word starts; -1 after a row's last word.
        ends: int `(batch, words)`, the byte after its last byte.
        tag_names: "O", "B-person", "I-person" and so on, of any scheme.
        scheme: the scheme of the tags, as for `BertTokenClassifier`; None infers it from the names.

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
    found = tag_scheme("decode_entities", tag_names, scheme)
    starts, tags = tf.convert_to_tensor(starts, tf.int32), tf.convert_to_tensor(tags, tf.int32)
    label = tf.where(starts == NO_NUMBER, -1, tf.gather(tf.constant(found.label_ids), tags))  # [B, U]
    is_first = tf.gather(tf.constant(found.begins), tags) | (label != _before(label, -1))
    if found.ends.any():
        is_first |= _before(tf.gather(tf.constant(found.ends), tags), False)
    is_first &= label >= 0
    entity = tf.cumsum(tf.cast(tf.boolean_mask(is_first, label >= 0), tf.int32)) - 1  # [words in entities]
    num_entities = tf.reduce_sum(tf.cast(is_first, tf.int32))

    def of_words(values: Tensor, dtype: tf.DType) -> tf.Tensor:
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
        "entity_label": by_text(tf.gather(tf.constant(found.labels, tf.string), tf.boolean_mask(label, is_first)), ""),
        # The op broadcasts the single column: no text is copied for each of its entities.
        "entity_text": tf.strings.substr(texts[:, None], tf.maximum(start, 0), end - start),
        "entity_start": start,
        "entity_end": end,
        "entity_score": by_text(score, float(NO_NUMBER)),
    }


def _before(values: tf.Tensor, first: Any) -> tf.Tensor:
    """The value of the word before each word `(batch, words)`; `first` for the first ones."""
    return tf.pad(values, [[0, 0], [1, 0]], constant_values=first)[:, :-1]
