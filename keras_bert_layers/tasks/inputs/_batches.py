"""From checked columns to batches of their rows in a `tf.data.Dataset`, and how TensorFlow runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.inputs import _arrays as arrays
from keras_bert_layers.tasks.inputs import _columns as columns_of
from keras_bert_layers.tasks.inputs._epochs import Epochs, of_length


def batches_of_rows(
    rows: tuple[Any, Any, Any], *, batch_size: int, lengths: Callable[..., tf.Tensor], epochs: Epochs | None
) -> tf.data.Dataset:
    """Batches of `(x,)`, `(x, y)` or `(x, y, sample_weight)`, with y None where weights come without labels.

    Args:
        rows: columns, labels and weights with equally many rows: arrays or ragged tensors, or tuples of such. Labels
            and weights may be None.
        batch_size: rows a batch.
        lengths: as in `RowOrder.batches`.
        epochs: which rows come together in each epoch; None leaves them in their order.
    """
    size = columns_of.num_rows(rows[0])
    parts = tf.nest.map_structure(arrays.as_tensor, rows)
    while parts[-1] is None:
        parts = parts[:-1]

    def lengths_of(chosen: tf.Tensor) -> tf.Tensor:
        return lengths(arrays.rows_of(parts[0], chosen))

    indices = tf.data.Dataset.range(size)
    if epochs is None:
        batches = indices.batch(batch_size)
    else:
        batches = epochs.batches(indices, batch_size, lengths=lengths_of, buffer=size)
    batches = of_length(batches, -(-size // batch_size), epochs)
    options = tf.data.Options()
    # They rewrite the graph at each start, which takes a tenth of a second, and find nothing here to improve.
    options.experimental_optimization.apply_default_optimizations = False
    return batches.map(lambda chosen: arrays.rows_of(parts, chosen)).with_options(options)


def untuned(data: Any) -> Any:
    """A `tf.data.Dataset` whose threads TensorFlow does not tune as it runs; anything else, as it is.

    When the iterator of a tuned dataset ends, TensorFlow 2.21 often waits for the tuner to wake, and it sleeps twice as
    long each time: up to as long as the iterator has run, a minute at most. A choice that the dataset holds is kept.
    """
    if not columns_of.is_dataset(data) or data.options().autotune.enabled is not None:
        return data
    options = tf.data.Options()
    options.autotune.enabled = False
    return data.with_options(options)
