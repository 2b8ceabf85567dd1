"""`SpearmanCorrelation`: Spearman's rank correlation of a whole data set."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.metrics._moments import correlation, moments, read_pairs


@register
class SpearmanCorrelation(keras.metrics.Metric):
    """Spearman's rank correlation of true and predicted values, over all batches; a metric of STS-B.

    Ranks need all values at once, so the metric keeps them, 8 bytes a row, and sorts them to compute the result. Equal
    values share the mean of their ranks.

    Args:
        capacity: the largest number of rows. **With more rows the result is NaN** until the metric is reset, because
            the correlation of some of the rows is not that of all rows.
        name: the metric's name.
        dtype: the dtype in which values are kept and compared.

    Call arguments:
        y_true: `(batch,)` or `(batch, 1)`.
        y_pred: `(batch,)` or `(batch, 1)`.
        sample_weight: `(batch,)`; rows of weight 0 are ignored, all others count once.

    The result is also NaN if a column is constant, if a value is not finite, and if `tf.distribute` adds the states of
    several replicas.

    Raises:
        TypeError, ValueError: a capacity out of range; more than one value a row.

    Examples:
        >>> metric = SpearmanCorrelation(capacity=4)
        >>> metric.update_state([1.0, 2.0, 3.0, 4.0], [0.1, 0.2, 0.2, 0.9])
        >>> round(float(metric.result()), 3)
        0.949
        >>> metric.update_state([5.0], [0.3])
        >>> float(metric.result())
        nan

    References:
        `scipy.stats.spearmanr`.
    """

    def __init__(self, capacity: int = 10_000, name: str = "spearman_correlation", *, dtype: Any = None):
        super().__init__(name=name, dtype=dtype)
        self.capacity = checks.positive_integer("SpearmanCorrelation", "capacity", capacity)
        # One more position, for rows that are ignored.
        self.true = self.add_variable((self.capacity + 1,), "zeros", name="true")
        self.predicted = self.add_variable((self.capacity + 1,), "zeros", name="predicted")
        self.num_rows = self.add_variable((), "zeros", name="num_rows")
        self.num_replicas = self.add_variable((), "zeros", name="num_replicas")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        true, predicted, weight = read_pairs("SpearmanCorrelation", y_true, y_pred, sample_weight, self.dtype)
        kept = ops.cast(weight != 0, "int32")
        finite = ops.isfinite(true) & ops.isfinite(predicted)
        index = ops.cast(ops.minimum(self.num_rows.value, self.capacity), "int32") + ops.cumsum(kept) - 1
        index = ops.where((weight != 0) & finite, ops.minimum(index, self.capacity), self.capacity)[:, None]
        self.true.assign(ops.scatter_update(self.true.value, index, true))
        self.predicted.assign(ops.scatter_update(self.predicted.value, index, predicted))
        # Values that are not finite have no rank; they count as too many rows.
        added = ops.where(ops.all(finite), ops.cast(ops.sum(kept), self.dtype), float("inf"))
        self.num_rows.assign_add(added)
        self.num_replicas.assign(ops.ones_like(self.num_replicas.value))

    def result(self) -> Any:
        """The correlation of the ranks of all rows, a scalar."""
        real = ops.arange(self.capacity, dtype=self.dtype) < self.num_rows.value  # [capacity]
        true, predicted = (_ranks(kept.value[:-1], real) for kept in (self.true, self.predicted))
        value = correlation(moments(true, predicted, ops.cast(real, self.dtype)))
        is_whole = (self.num_rows.value <= self.capacity) & (self.num_replicas.value <= 1)
        return ops.where(is_whole, value, float("nan"))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "capacity": self.capacity}


def _ranks(values: Any, real: Any) -> Any:
    """The rank of each value, from 1; equal values share the mean of their ranks; 0 where `real` is False."""
    ordered = ops.sort(ops.where(real, values, float("inf")))
    first, after = (ops.cast(ops.searchsorted(ordered, values, side=side), values.dtype) for side in ("left", "right"))
    return ops.where(real, (first + 1 + after) / 2, 0.0)
