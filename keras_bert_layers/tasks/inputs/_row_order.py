"""The order in which `fit` trains on rows."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.inputs import _arrays as arrays
from keras_bert_layers.tasks.inputs import _columns as columns_of

# The batches whose rows are sorted by length together. More make batches of similar texts; fewer take more padding.
GROUPED_BATCHES = 50


class RowOrder(enum.Enum):
    """How rows are put into batches."""

    AS_GIVEN = "as given"
    SHUFFLED = "shuffled"
    #: Shuffled, with rows of similar length in each batch.
    BY_LENGTH = "by length"

    @classmethod
    def of(cls, owner: str, x: Any, *, shuffle: bool, group_by_length: bool) -> RowOrder:
        """The order of `fit`'s arguments; ValueError where they do not go together."""
        if not checks.boolean(owner, "group_by_length", group_by_length):
            return cls.SHUFFLED if shuffle else cls.AS_GIVEN
        if columns_of.is_dataset(x):
            rule = "be False for a dataset, which is batched already"
        elif not shuffle:
            rule = "be False if `shuffle` is False"
        else:
            return cls.BY_LENGTH
        raise ValueError(checks.message(owner, "group_by_length", rule, group_by_length))

    def batches(
        self, rows: tf.data.Dataset, batch_size: int, *, lengths: Callable[..., tf.Tensor], buffer: int, seed: tf.Tensor
    ) -> tf.data.Dataset:
        """Batches of rows.

        Args:
            rows: yields one row at a time.
            batch_size: rows a batch.
            lengths: maps the elements of a batch of rows to the rows' lengths, integers `(rows,)`.
            buffer: how many rows are shuffled at a time; as in `tf.data.Dataset.shuffle`.
            seed: an int64 scalar, which determines the order.

        Returns:
            The dataset. `BY_LENGTH` sorts the rows of 50 batches, cuts them into batches and shuffles these.
        """
        if self is RowOrder.AS_GIVEN:
            return rows.batch(batch_size)
        rows = rows.shuffle(buffer, seed=seed, reshuffle_each_iteration=False)
        if self is RowOrder.SHUFFLED:
            return rows.batch(batch_size)

        def cut(*element: Any) -> tf.data.Dataset:
            order = tf.argsort(lengths(*element), direction="DESCENDING", stable=True)
            parts = element if isinstance(rows.element_spec, tuple) else element[0]

            starts = tf.data.Dataset.range(0, tf.size(order, tf.int64), batch_size)
            return starts.map(lambda start: arrays.rows_of(parts, order[start : start + batch_size]))

        groups = rows.batch(batch_size * GROUPED_BATCHES).flat_map(cut)
        return groups.shuffle(GROUPED_BATCHES, seed=seed, reshuffle_each_iteration=False)
