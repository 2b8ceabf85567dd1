"""From columns of raw text to batches of it in a `tf.data.Dataset`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._row_order import RowOrder


def as_dataset(
    owner: str,
    columns: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    batch_size: int | None,
    order: RowOrder,
    lengths: Callable[..., tf.Tensor],
) -> tf.data.Dataset:
    """Batches of `(text,)`, `(text, y)` or `(text, y, sample_weight)`.

    Args:
        owner: the class that asks, for errors.
        columns: what `as_columns` returns.
        y: one row a text, or None.
        sample_weight: one number a text, or None.
        batch_size: rows a batch, 32 if None, as in Keras.
        order: which rows come together.
        lengths: as in `RowOrder.batches`.

    Raises:
        ValueError: another number of labels or weights than of texts.
    """
    parts = [columns]
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if values is None:
            parts.append(None)  # weights keep their place behind labels that are not there
            continue
        array = text_data.as_array(values)
        if len(array) != text_data.num_rows(columns):
            raise ValueError(
                f"`{owner}`: `{name}` must have one row for each text. "
                f"Received: {text_data.num_rows(columns)} texts and {len(array)} rows of {name}."
            )
        parts.append(array)
    while parts[-1] is None:
        parts.pop()
    dataset = tf.data.Dataset.from_tensor_slices(tuple(parts))
    size, batch_size = text_data.num_rows(columns), batch_size or 32
    if order.is_shuffled:
        dataset = dataset.shuffle(max(size, 1), reshuffle_each_iteration=True)
    batches = order.batches(dataset, batch_size, lengths=lengths)
    return batches.apply(tf.data.experimental.assert_cardinality(-(-size // batch_size)))
