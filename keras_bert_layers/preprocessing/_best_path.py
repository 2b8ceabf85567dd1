"""The best pieces of words in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing._tokens import Tokens


class BestPath:
    """Viterbi's algorithm over the pieces of words, for all words at once, as the library `tokenizers` runs it.

    Of equal sums, the one whose last piece is longest is taken. A character that is no piece is unknown; neighbouring
    unknown ones are one token.

    Args:
        find: from pieces, string `[...]`, to their ids; `unknown_id` for a text that is none.
        scores: float64 `[V + 1]`, the scores of the pieces, that of an unknown character at `unknown_id`.
        longest: the number of characters of the longest piece.
        unknown_id: the id of unknown characters.
        other_id: an id that counts as `unknown_id`, that of the unknown piece written out.
    """

    UNKNOWN_PENALTY = 10.0

    def __init__(self, find: Callable[[Any], Any], scores: tf.Tensor, longest: int, unknown_id: int, other_id: int):
        self._find, self._scores, self._longest = find, scores, longest
        self._unknown_id, self._other_id = unknown_id, other_id

    def encode(self, words: tf.Tensor) -> Tokens:
        """The pieces of words `[W]`, none empty, with offsets in bytes."""
        characters = tf.strings.unicode_split(words, "UTF-8").to_tensor("")  # [W, C]
        num_characters = tf.reduce_sum(tf.cast(characters != "", tf.int32), axis=1)  # [W]
        ids, lengths = self._forward(tf.transpose(characters))  # [C, W] each
        ends = self._backward(lengths, num_characters)  # bool [W, C], whether a piece ends after a character
        word = tf.where(ends)[:, 0]  # [P], P pieces
        pieces = tf.boolean_mask(tf.transpose(ids), ends)
        byte_ends = tf.boolean_mask(tf.cumsum(tf.cast(tf.strings.length(characters), tf.int64), axis=1), ends)
        # Neighbouring unknown characters are one token, which ends with the last of them.
        next_word, next_piece = tf.concat([word[1:], tf.constant([-1], tf.int64)], 0), tf.concat([pieces[1:], [-1]], 0)
        is_last = (word != next_word) | (pieces != self._unknown_id) | (next_piece != self._unknown_id)
        word, byte_ends = tf.boolean_mask(word, is_last), tf.boolean_mask(byte_ends, is_last)
        counts = tf.math.bincount(tf.cast(word, tf.int32), minlength=tf.size(words), dtype=tf.int64)
        row_splits = tf.concat([tf.zeros([1], tf.int64), tf.cumsum(counts)], 0)
        goes_on = tf.concat([tf.constant([-1], tf.int64), word], 0)[:-1] == word
        starts = tf.where(goes_on, tf.concat([tf.zeros([1], tf.int64), byte_ends], 0)[:-1], tf.zeros([1], tf.int64))
        return Tokens(tf.boolean_mask(pieces, is_last), row_splits, starts, byte_ends)

    def _forward(self, columns: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """For each place, int32 `[C, W]` each: the id and the length of the last piece of the best path to there."""
        width, num_words = tf.shape(columns)[0], tf.shape(columns)[1]
        longest = tf.minimum(self._longest, width)

        def step(place: Any, texts: Any, sums: Any, ids: Any, lengths: Any) -> tuple[Any, ...]:
            # What ends here, the longest first, and the sums of the paths up to there.
            character = tf.repeat(columns[place][:, None], longest, axis=1)
            texts = tf.strings.join([tf.concat([texts[:, 1:], tf.fill([num_words, 1], "")], 1), character])
            found = tf.reshape(self._find(tf.reshape(texts, [-1])), tf.shape(texts))  # [W, L]
            is_one = tf.range(longest) == longest - 1
            is_piece = (found != self._unknown_id) | is_one
            totals = sums + tf.where(is_piece, tf.gather(self._scores, found), float("-inf"))
            best = tf.argmax(totals, axis=1, output_type=tf.int32)  # the first of equals
            chosen = tf.gather(found, best, axis=1, batch_dims=1)
            sums = tf.concat([sums[:, 1:], tf.reduce_max(totals, axis=1)[:, None]], 1)
            return place + 1, texts, sums, ids.write(place, chosen), lengths.write(place, longest - best)

        none = tf.fill([num_words, longest - 1], tf.constant(float("-inf"), tf.float64))
        sums = tf.concat([none, tf.zeros([num_words, 1], tf.float64)], 1)
        arrays = (tf.TensorArray(tf.int32, width, element_shape=[None]) for _ in range(2))
        state = (tf.constant(0), tf.fill([num_words, longest], ""), sums, *arrays)
        *_, ids, lengths = tf.while_loop(
            lambda place, *_: place < width, step, state, shape_invariants=_invariants(state)
        )
        ids = ids.stack()
        return tf.where(ids == self._other_id, self._unknown_id, ids), lengths.stack()

    def _backward(self, lengths: tf.Tensor, num_characters: tf.Tensor) -> tf.Tensor:
        """Whether a piece of the best path ends at a place, bool `[W, C]`."""
        width, num_words = tf.shape(lengths)[0], tf.shape(lengths)[1]
        longest = tf.minimum(self._longest, width)

        def step(place: Any, marked: Any, ends: Any) -> tuple[Any, ...]:
            is_end = marked[:, 0] | (place == num_characters - 1)
            before = tf.one_hot(
                lengths[place], longest + 1, on_value=True, off_value=False
            )  # the end of the one before
            marked = (marked | (before & is_end[:, None]))[:, 1:]
            return place - 1, tf.pad(marked, [[0, 0], [0, 1]]), ends.write(place, is_end)

        ends = tf.TensorArray(tf.bool, width, element_shape=[None])
        state = (width - 1, tf.zeros([num_words, longest + 1], tf.bool), ends)
        *_, ends = tf.while_loop(lambda place, *_: place >= 0, step, state, shape_invariants=_invariants(state))
        return tf.transpose(ends.stack())


def _invariants(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shapes that stay the same in a loop: all but the sizes of matrices."""
    return tuple(
        tf.TensorShape(None) if isinstance(part, tf.TensorArray) else tf.TensorShape([None] * part.shape.rank)
        for part in state
    )
