"""Tags words by all of their pieces, in graph.

Axes: B batch, P pieces of a row, U words of a row, N pieces and M words of the batch, C tags.
"""

from __future__ import annotations

from typing import NamedTuple

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.preprocessors.word_aligner import NO_WORD, AlignedWords

#: What decides a word's tag: transformers' names, `aggregation_strategy` of its `TokenClassificationPipeline`.
AGGREGATIONS = ("first", "average", "max", "simple")


class TaggedWords(NamedTuple):
    """The arguments of `decode_entities` about words, `(batch, words)` each."""

    tags: tf.Tensor
    scores: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def tags_of_pieces(logits: tf.Tensor, pieces: AlignedWords, *, aggregation: str) -> TaggedWords:
    """Tags each word by all of its pieces.

    Args:
        logits: float32 `[windows, S, C]`.
        pieces: the pieces of the words, as `WordAligner.align_pieces` returns them.
        aggregation: "average", the most probable tag of the mean of the pieces' probabilities; or "max", the tag of the
            piece whose tag is most probable, the first of several.

    Returns:
        The tag of each word and its probability there; the start of its first piece and the end of its last.
    """
    is_piece = pieces.places != NO_WORD
    logits = tf.reshape(logits, [-1, logits.shape[-1]])
    probabilities = tf.nn.softmax(tf.gather(logits, tf.boolean_mask(pieces.places, is_piece)))  # [N, C]
    before = tf.pad(pieces.word_ids, [[0, 0], [1, 0]], constant_values=NO_WORD)[:, :-1]
    begins_word = is_piece & (pieces.word_ids != before)  # [B, P]
    word = tf.cumsum(tf.cast(tf.boolean_mask(begins_word, is_piece), tf.int32)) - 1  # [N]
    num_words = tf.reduce_sum(tf.cast(begins_word, tf.int32))
    if aggregation == "average":
        means = tf.math.unsorted_segment_mean(probabilities, word, num_words)  # [M, C]
        tags, scores = tf.argmax(means, axis=1, output_type=tf.int32), tf.reduce_max(means, axis=1)
    else:
        best = tf.reduce_max(probabilities, axis=1)  # [N]
        scores = tf.math.unsorted_segment_max(best, word, num_words)
        places = tf.range(tf.size(best))
        chosen = tf.where(best == tf.gather(scores, word), places, tf.size(best))
        chosen = tf.math.unsorted_segment_min(chosen, word, num_words)
        tags = tf.argmax(tf.gather(probabilities, chosen), axis=1, output_type=tf.int32)
    ends = tf.math.unsorted_segment_max(tf.boolean_mask(pieces.ends, is_piece), word, num_words)
    num_rows = tf.shape(begins_word, tf.int64)[0]
    rows = tf.where(begins_word)[:, 0]

    def by_row(values: tf.Tensor) -> tf.Tensor:
        ragged = tf.RaggedTensor.from_value_rowids(values, rows, nrows=num_rows, validate=False)
        return ragged.to_tensor(NO_WORD)

    starts = tf.boolean_mask(pieces.starts, begins_word)
    return TaggedWords(tf.maximum(by_row(tags), 0), *map(by_row, (scores, starts, ends)))
