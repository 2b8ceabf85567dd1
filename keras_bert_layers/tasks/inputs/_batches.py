"""From checked columns to batches of their rows in a `tf.data.Dataset`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.inputs import _arrays as arrays
from keras_bert_layers.tasks.inputs import _columns as columns_of
from keras_bert_layers.tasks.inputs._row_order import RowOrder


def batches_of_rows(
    rows: tuple[Any, Any, Any], *, batch_size: int, order: RowOrder, lengths: Callable[..., tf.Tensor]
) -> tf.data.Dataset:
    """Batches of `(x,)`, `(x, y)` or `(x, y, sample_weight)`, with y None where weights come without labels.

    Args:
        rows: columns, labels and weights with equally many rows: arrays or ragged tensors, or tuples of such. Labels
            and weights may be None.
        batch_size: rows a batch.
        order: which rows come together.
        lengths: as in `RowOrder.batches`.
    """
    size = columns_of.num_rows(rows[0])
    parts = tf.nest.map_structure(arrays.as_tensor, rows)
    while parts[-1] is None:
        parts = parts[:-1]

    def lengths_of(chosen: tf.Tensor) -> tf.Tensor:
        return lengths(arrays.rows_of(parts[0], chosen))

    indices = tf.data.Dataset.range(size)
    if order.is_shuffled:
        indices = indices.shuffle(size, reshuffle_each_iteration=True)
    batches = order.batches(indices, batch_size, lengths=lengths_of)
    batches = batches.map(lambda chosen: arrays.rows_of(parts, chosen))
    options = tf.data.Options()
    # They rewrite the graph at each start, which takes a tenth of a second, and find nothing here to improve.
    options.experimental_optimization.apply_default_optimizations = False
    batches = batches.apply(tf.data.experimental.assert_cardinality(-(-size // batch_size)))
    return batches.with_options(options)
