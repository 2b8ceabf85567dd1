"""`MatthewsCorrelation`: the Matthews correlation coefficient (MCC)."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.metrics._classes import read_classes, row_weights


@register
class MatthewsCorrelation(keras.metrics.Metric):
    """The Matthews correlation coefficient of true and predicted classes, over all batches; the metric of CoLA.

    From -1 to 1. With `n` rows, of which `c` are right, and `t` and `p` the counts of each true and predicted class:
    `(c * n - sum(t * p)) / sqrt((n² - sum(t²)) * (n² - sum(p²)))`, and 0 in place of 0 / 0. For two classes it is
    `(TP * TN - FP * FN) / sqrt((TP + FP) * (TP + FN) * (TN + FP) * (TN + FN))`.

    Args:
        num_classes: the number of classes, at least 2.
        name: the metric's name.
        dtype: the dtype of the counts; float32 counts exactly up to 16,777,216 rows.

    Call arguments:
        y_true: int `(batch,)` or `(batch, 1)`, labels.
        y_pred: float `(batch, num_classes)`, logits or probabilities, or int `(batch,)`, labels.
        sample_weight: `(batch,)`, the weight of each row.

    The result is NaN after a label that is not a class.

    Raises:
        TypeError, ValueError: an argument out of range; other shapes.

    Examples:
        >>> metric = MatthewsCorrelation()
        >>> metric.update_state([0, 0, 1, 1], [0, 1, 1, 1])
        >>> round(float(metric.result()), 3)
        0.577

    References:
        Gorodkin 2004, https://doi.org/10.1016/j.compbiolchem.2004.09.006; `sklearn.metrics.matthews_corrcoef`.
    """

    def __init__(self, num_classes: int = 2, name: str = "matthews_correlation", *, dtype: Any = None):
        super().__init__(name=name, dtype=dtype)
        self.num_classes = checks.integer("MatthewsCorrelation", "num_classes", num_classes, smallest=2)
        self.counts = self.add_variable((self.num_classes, self.num_classes), "zeros", name="counts")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        true, predicted, known = read_classes("MatthewsCorrelation", self.num_classes, y_true, y_pred)
        weight = row_weights("MatthewsCorrelation", true, sample_weight, self.dtype)
        weight = ops.where(known | (weight == 0), weight, float("nan"))
        cell = true * self.num_classes + predicted
        added = ops.segment_sum(weight, cell, num_segments=self.num_classes**2)
        self.counts.assign_add(
            ops.reshape(added, (self.num_classes, self.num_classes))
        )  # [C, C], one row for each true class

    def result(self) -> Any:
        """The correlation of all batches, a scalar."""
        counts = self.counts.value
        total, right = ops.sum(counts), ops.sum(counts * ops.eye(self.num_classes, dtype=self.dtype), axis=0)
        true, predicted = ops.sum(counts, axis=1), ops.sum(counts, axis=0)  # [C]
        # False negatives, false positives and true negatives of each class: differences of counts are exact in float32,
        # differences of their products are not.
        missed, wrong = true - right, predicted - right
        rejected = (total - true) - wrong
        parts = ops.divide_no_nan(ops.stack([right, true, predicted, missed, wrong, rejected]), total)
        right, true, predicted, missed, wrong, rejected = ops.unstack(parts)
        covariance = ops.sum(right * rejected - missed * wrong)
        spread = ops.sum(true * (rejected + wrong)) * ops.sum(predicted * (rejected + missed))
        return ops.divide_no_nan(covariance, ops.sqrt(spread))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "num_classes": self.num_classes}
