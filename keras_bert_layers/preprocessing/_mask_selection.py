"""Which words, or runs of words, masked language modelling takes, until a row's budget of tokens is used."""

from __future__ import annotations

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing._random_numbers import uniform


def take_words(sizes: tf.Tensor, budget: tf.Tensor) -> tf.Tensor:
    """Takes words one after the other, and skips those that are larger than what is left of the budget.

    Args:
        sizes: int32 `[B, W]`, the number of tokens of each word, in the order in which to try them.
        budget: int32 `[B]`, the number of tokens to take.

    Returns:
        Whether each word is taken, bool `[B, W]`.
    """
    num_words = tf.shape(sizes)[1]
    budget = tf.minimum(budget, tf.reduce_sum(sizes, axis=-1))
    # Words are skipped one by one only after the first that does not fit.
    fits_with_all = tf.cumsum(sizes, axis=-1) <= budget[:, None]
    left = budget - tf.reduce_sum(tf.where(fits_with_all, sizes, 0), axis=-1)
    num_fitting = tf.reduce_sum(tf.cast(fits_with_all, tf.int32), axis=-1)  # [B]

    def try_word(index: tf.Tensor, left: tf.Tensor, is_taken: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        size = sizes[:, index]
        fits = (size > 0) & (size <= left) & (index >= num_fitting)
        is_this = tf.range(num_words) == index
        return index + 1, left - tf.where(fits, size, 0), is_taken | (fits[:, None] & is_this)

    def go_on(index: tf.Tensor, left: tf.Tensor, is_taken: tf.Tensor) -> tf.Tensor:
        return (index < num_words) & tf.reduce_any(left > 0)

    first = tf.reduce_min(num_fitting)
    return tf.while_loop(go_on, try_word, (first, left, fits_with_all & (sizes > 0)))[2]


def take_spans(
    sizes: tf.Tensor, runs: tf.Tensor, lengths: tf.Tensor, order: tf.Tensor, budget: tf.Tensor, *, longest: int
) -> tf.Tensor:
    """Takes spans of words, from each word in an order that is not taken yet, as far as they fit into the budget.

    A span ends before a word of another run, and before a word that is larger than what is left of the budget. It may
    reach into words that are taken; these cost nothing.

    Args:
        sizes: int32 `[B, W]`, the number of tokens of each word; 0 for words that do not exist.
        runs: int32 `[B, W]`, ascending, the run of words without a gap that each word belongs to.
        lengths: int32 `[B, W]`, the number of words in the span that begins at each word, from 1 to `longest`.
        order: int32 `[B, W]`, the words in the order in which to try them.
        budget: int32 `[B]`, the number of tokens to take.
        longest: the largest number of words in a span, L.

    Returns:
        Whether each word is taken, bool `[B, W]`.
    """
    num_rows, num_words = tf.unstack(tf.shape(sizes))
    places = tf.range(longest)
    # Words that do not exist follow the last one, so that each word has `longest` after it; in another run.
    width = num_words + longest
    table = tf.pad(tf.stack([sizes, runs], axis=-1), [[0, 0], [0, longest], [0, 0]], constant_values=-1)
    table = tf.reshape(table, [-1, 2])  # [B * (W + L), 2]
    lengths = tf.gather(lengths, order, batch_dims=1)
    order += width * tf.range(num_rows)[:, None]

    def try_span(index: tf.Tensor, left: tf.Tensor, taken: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        window = order[:, index, None] + places  # [B, L]
        size, run = tf.unstack(tf.gather(table, window), axis=-1)
        is_free = tf.gather(taken, window) == 0
        in_span = (places < lengths[:, index, None]) & (run == run[:, :1]) & (size[:, :1] > 0) & is_free[:, :1]
        size = tf.where(is_free, size, 0)
        new = tf.cast(in_span & (tf.cumsum(size, axis=-1) <= left[:, None]) & is_free, tf.int32)
        # Small operations: what touches all words takes most of the time.
        return (
            index + 1,
            left - tf.reduce_sum(new * size, axis=-1),
            tf.tensor_scatter_nd_add(taken, window[..., None], new),
        )

    def go_on(index: tf.Tensor, left: tf.Tensor, taken: tf.Tensor) -> tf.Tensor:
        return (index < num_words) & tf.reduce_any(left > 0)

    nothing = tf.zeros([num_rows * width], tf.int32)
    taken = tf.while_loop(go_on, try_span, (tf.constant(0), budget, nothing))[2]
    return tf.reshape(taken, [num_rows, width])[:, :num_words] > 0


def span_lengths(seeds: tf.Tensor, num_words: tf.Tensor, *, stop_rate: float, longest: int, stream: int) -> tf.Tensor:
    """The number of words in a span that begins at each word, int32 `[B, W]`.

    A length has the probability `stop_rate * (1 - stop_rate) ** (length - 1)`, divided by the sum up to `longest`.
    """
    sums = np.cumsum(np.float64(1 - stop_rate) ** np.arange(longest))
    bounds = (sums[:-1] / sums[-1]).astype(np.float32).tolist()
    return 1 + tf.raw_ops.Bucketize(input=uniform(seeds, num_words, stream=stream), boundaries=bounds)
