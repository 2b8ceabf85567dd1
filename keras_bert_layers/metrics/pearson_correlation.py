"""`PearsonCorrelation`: Pearson's correlation of a whole data set."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal.registration import register
from keras_bert_layers.metrics._moments import correlation, merge, moments, read_pairs


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
        ValueError: more than one value a row.

    Examples:
        >>> metric = PearsonCorrelation()
        >>> for batch in ([1.0, 2.0], [3.0, 5.0]), ([4.0], [4.0]):
        ...     metric.update_state(*batch)
        >>> round(float(metric.result()), 3)
        0.327

    References:
        `scipy.stats.pearsonr`; Chan, Golub and LeVeque 1983, https://doi.org/10.1080/00031305.1983.10483115.
    """

    def __init__(self, name: str = "pearson_correlation", *, dtype: Any = None):
        super().__init__(name=name, dtype=dtype)
        self.moments = self.add_variable((6,), "zeros", name="moments")
        # Subtracted from all batches. They are near the means, so that the remaining values are small.
        self.pivots = self.add_variable((2,), "zeros", name="pivots")
        self.num_replicas = self.add_variable((), "zeros", name="num_replicas")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        true, predicted, weight = read_pairs("PearsonCorrelation", y_true, y_pred, sample_weight, self.dtype)
        means = moments(true, predicted, weight)[1:3]
        self.pivots.assign(ops.where(self.moments.value[0] == 0, means, self.pivots.value))
        batch = moments(true - self.pivots.value[0], predicted - self.pivots.value[1], weight)
        self.moments.assign(merge(self.moments.value, batch))
        self.num_replicas.assign(ops.ones_like(self.num_replicas.value))

    def result(self) -> Any:
        """The correlation of all batches, a scalar."""
        return ops.where(self.num_replicas.value > 1, float("nan"), correlation(self.moments.value, self.pivots.value))
