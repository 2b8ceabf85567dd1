"""In which order rows are trained on."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from keras_bert_layers._internal.lazy import tf

# Sorted by length at a time. More, and a batch holds what is alike; fewer, and there is more padding.
GROUPED_BATCHES = 50


class RowOrder(enum.Enum):
    """How rows become batches."""

    AS_GIVEN = "as given"
    SHUFFLED = "shuffled"
    #: Shuffled, but with rows of about one length in each batch.
    BY_LENGTH = "by length"

    @property
    def is_shuffled(self) -> bool:
        """Whether every epoch has an order of its own, drawn from TensorFlow's global seed."""
        return self is not RowOrder.AS_GIVEN

    def batches(self, rows: tf.data.Dataset, batch_size: int, *, lengths: Callable[..., tf.Tensor]) -> tf.data.Dataset:
        """Batches of rows.

        Args:
            rows: yields one row, shuffled where this order is.
            batch_size: rows a batch.
            lengths: from the elements of a batch of rows to their lengths, integers `(rows,)`.

        Returns:
            The dataset. By length, the rows of 50 batches are sorted and cut, and the batches shuffled again.
        """
        if self is not RowOrder.BY_LENGTH:
            return rows.batch(batch_size)

        def cut(*element: Any) -> tf.data.Dataset:
            order = tf.argsort(lengths(*element), direction="DESCENDING", stable=True)
            parts = element if isinstance(rows.element_spec, tuple) else element[0]

            def batch(start: tf.Tensor) -> Any:
                chosen = order[start : start + batch_size]
                return tf.nest.map_structure(lambda part: None if part is None else tf.gather(part, chosen), parts)

            return tf.data.Dataset.range(0, tf.size(order, tf.int64), batch_size).map(batch)

        groups = rows.batch(batch_size * GROUPED_BATCHES).flat_map(cut)
        return groups.shuffle(GROUPED_BATCHES, reshuffle_each_iteration=True)


def token_counts(tokenizer: Any, x: Any) -> tf.Tensor:
    """The tokens of each row of a batch of texts, of tuples of columns of them, or of rows of words, int64 `(rows,)`.

    Tokenizing a text once more takes little beside a step of training on it, and bytes would say less: texts of as
    many bytes as each other differ by a quarter in their tokens.
    """
    found = tf.constant(0, tf.int64)
    for column in x if isinstance(x, tuple) else (x,):
        texts = column.flat_values if isinstance(column, tf.RaggedTensor) else tf.reshape(column, [-1])
        counts = tokenizer.tokenize(texts).row_lengths()
        if isinstance(column, tf.RaggedTensor):
            counts = column.with_flat_values(counts)
        elif column.shape.rank > 1:
            counts = tf.reshape(counts, tf.shape(column))
        found += counts if column.shape.rank == 1 else tf.reduce_sum(counts, axis=1)
    return found
