"""Tables of texts that are compared: a row for each example, with ids that tell which texts are equal."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Columns, Tensor
from keras_bert_layers.losses.in_batch import ABSENT


def text_ids(table: Tensor) -> Any:
    """An id for each text of a batch, the same for texts that are equal byte for byte; in graph.

    Args:
        table: string `(batch, columns)`: a text, its partner, and any number of negatives; an empty string is an absent
            negative.

    Returns:
        int32 `(batch, columns)`, with `ABSENT` for absent negatives.
    """
    ids = tf.reshape(tf.unique(tf.reshape(table, [-1]))[1], tf.shape(table))
    is_absent = tf.equal(table[:, 2:], "")
    ids = tf.concat([ids[:, :2], tf.where(is_absent, ABSENT, ids[:, 2:])], axis=1)
    ids.set_shape(table.shape)
    return ids


def column_by_column(table: Tensor) -> Any:
    """A tensor `(batch, columns)` as `(columns * batch,)`, one column after the other; in graph."""
    return tf.reshape(tf.transpose(table), [-1])


def joined(columns: Any) -> Any:
    """String tensors `(batch,)` and `(batch, texts)` side by side in one `(batch, columns)`."""
    columns = [tf.convert_to_tensor(column, tf.string) for column in columns]
    return tf.concat([column[:, None] if column.shape.rank == 1 else column for column in columns], axis=1)


def refuse_negatives(owner: str, columns: Columns) -> None:
    """Refuses triplets in `evaluate` and `predict`; ValueError."""
    if isinstance(columns, tuple) and len(columns) > 2:
        rule = "be texts or pairs of texts"
        raise ValueError(checks.message(owner, "x", rule, f"a tuple of {len(columns)}"))
