"""Pearson's and Spearman's correlation of a data set, not the mean over its batches; the metrics of STS-B."""

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.metrics.class_metrics import read_column, row_weights

# Rounding gives equal values a spread of up to this many units in the last place of their mean.
_UNITS = 4

_MANTISSA_BITS = {"float64": 52, "float32": 23, "float16": 10}


@register
class PearsonCorrelation(keras.metrics.Metric):
    """Pearson's correlation of true and predicted values, over all batches; a metric of STS-B.

    `keras.metrics.PearsonCorrelation` averages the correlations of the batches, which is not the correlation of the
    data set. This metric keeps the means, and the sums of squares and products around them, so that float32 is enough
    even if the mean is large and the spread is small.

    Args:
        name: the metric's name.
        dtype: the dtype of the sums.

    Call arguments:
        y_true: `(batch,)` or `(batch, 1)`.
        y_pred: `(batch,)` or `(batch, 1)`.
        sample_weight: `(batch,)`, the weight of each row.

    The result is NaN if a column is constant, if a value is not finite, and if `tf.distribute` adds the states of
    several replicas, because their sum is not the state of the whole.

    Raises:
        ValueError: more than one value per row.

    Examples:
        >>> metric = PearsonCorrelation()
        >>> for batch in ([1.0, 2.0], [3.0, 5.0]), ([4.0], [4.0]):
        ...     metric.update_state(*batch)
        >>> round(float(metric.result()), 3)
        0.327

    References:
        `scipy.stats.pearsonr`; Chan, Golub and LeVeque 1983, https://doi.org/10.1080/00031305.1983.10483115.
    """

    def __init__(self, name: str = "pearson_correlation", *, dtype: str | keras.DTypePolicy | None = None):
        super().__init__(name=name, dtype=dtype)
        self.moments = self.add_variable((6,), "zeros", name="moments")
        # Subtracted from all batches. They are near the means, so that the remaining values are small.
        self.pivots = self.add_variable((2,), "zeros", name="pivots")
        self.num_replicas = self.add_variable((), "zeros", name="num_replicas")

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        true, predicted, weight = _read_pairs("PearsonCorrelation", y_true, y_pred, sample_weight, self.dtype)
        means = _moments(true, predicted, weight)[1:3]
        self.pivots.assign(ops.where(self.moments.value[0] == 0, means, self.pivots.value))
        batch = _moments(true - self.pivots.value[0], predicted - self.pivots.value[1], weight)
        self.moments.assign(_merge(self.moments.value, batch))
        self.num_replicas.assign(ops.ones_like(self.num_replicas.value))

    def result(self) -> Any:
        """The correlation of all batches, a scalar."""
        return ops.where(self.num_replicas.value > 1, float("nan"), _correlation(self.moments.value, self.pivots.value))


@register
class SpearmanCorrelation(keras.metrics.Metric):
    """Spearman's rank correlation of true and predicted values, over all batches; a metric of STS-B.

    Ranks need all values at once, so the metric keeps them, 8 bytes per row, and sorts them to compute the result.
    Equal values share the mean of their ranks.

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
        TypeError, ValueError: a capacity out of range; more than one value per row.

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

    def __init__(
        self,
        capacity: int = 10_000,
        name: str = "spearman_correlation",
        *,
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.capacity = checks.positive_integer("SpearmanCorrelation", "capacity", capacity)
        # One more position, for rows that are ignored.
        self.true = self.add_variable((self.capacity + 1,), "zeros", name="true")
        self.predicted = self.add_variable((self.capacity + 1,), "zeros", name="predicted")
        self.num_rows = self.add_variable((), "zeros", name="num_rows")
        self.num_replicas = self.add_variable((), "zeros", name="num_replicas")

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        true, predicted, weight = _read_pairs("SpearmanCorrelation", y_true, y_pred, sample_weight, self.dtype)
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
        value = _correlation(_moments(true, predicted, ops.cast(real, self.dtype)))
        is_whole = (self.num_rows.value <= self.capacity) & (self.num_replicas.value <= 1)
        return ops.where(is_whole, value, float("nan"))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "capacity": self.capacity}


def _read_pairs(owner: str, y_true: Tensor, y_pred: Tensor, sample_weight: Any, dtype: str) -> tuple[Any, Any, Any]:
    """Both columns and the weights, `(batch,)`; the columns are 0 where the weight is 0."""
    rule = "be one value per row, (batch,) or (batch, 1)"
    true = read_column(owner, "y_true", ops.cast(y_true, dtype), rule)
    predicted = read_column(owner, "y_pred", ops.cast(y_pred, dtype), rule)
    weight = row_weights(owner, true, sample_weight, dtype)
    return ops.where(weight != 0, true, 0.0), ops.where(weight != 0, predicted, 0.0), weight


def _moments(first: Tensor, second: Tensor, weight: Tensor) -> Any:
    """The sum of weights, both means, and the weighted sums of squares and products around them: `(6,)`."""
    total = ops.sum(weight)
    means, centred = [], []
    for column in (first, second):
        rough = ops.divide_no_nan(ops.sum(weight * column), total)
        mean = rough + ops.divide_no_nan(ops.sum(weight * (column - rough)), total)
        means.append(mean)
        centred.append(column - mean)
    products = ((0, 0), (1, 1), (0, 1))
    return ops.stack([total, *means, *(ops.sum(weight * centred[i] * centred[j]) for i, j in products)])


def _merge(one: Any, other: keras.metrics.Metric) -> Any:
    """Merges the moments of two collections.

    References:
        Chan, Golub and LeVeque 1983, https://doi.org/10.1080/00031305.1983.10483115.
    """
    total = one[0] + other[0]
    share = ops.divide_no_nan(other[0], total)
    gap = other[1:3] - one[1:3]
    products = ops.stack([gap[0] * gap[0], gap[1] * gap[1], gap[0] * gap[1]])
    return ops.concatenate(
        [ops.reshape(total, (1,)), one[1:3] + gap * share, one[3:] + other[3:] + products * one[0] * share]
    )


def _correlation(found: Any, pivots: Any = 0.0) -> Any:
    """Pearson's correlation from moments; NaN if one of the two columns is constant.

    Args:
        found: `(6,)`, from `_moments`.
        pivots: `(2,)`, values that were subtracted from the columns before.
    """
    resolution = _UNITS * 2.0 ** -_MANTISSA_BITS.get(keras.backend.standardize_dtype(found.dtype), 7)
    squares = found[3:5]
    constant = squares <= found[0] * ops.square(resolution * (found[1:3] + pivots))
    value = found[5] / (ops.sqrt(squares[0]) * ops.sqrt(squares[1]))
    return ops.where(ops.any(constant), float("nan"), ops.clip(value, -1.0, 1.0))


def _ranks(values: Tensor, real: Tensor) -> Any:
    """The rank of each value, from 1; equal values share the mean of their ranks; 0 where `real` is False."""
    ordered = ops.sort(ops.where(real, values, float("inf")))
    first, after = (ops.cast(ops.searchsorted(ordered, values, side=side), values.dtype) for side in ("left", "right"))
    return ops.where(real, (first + 1 + after) / 2, 0.0)
