"""`MatthewsCorrelation`: the correlation of labels and predicted classes."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal.registration import register
from keras_bert_layers.metrics._classes import check_num_classes, read_classes, row_weights


@register
class MatthewsCorrelation(keras.metrics.Metric):
    """The correlation of true and predicted classes, from -1 to 1, over all batches; the metric of CoLA.

    With `n` rows, `c` of them right, `t` and `p` the counts of each true and each predicted class:
    `(c * n - sum(t * p)) / sqrt((n² - sum(t²)) * (n² - sum(p²)))`, and 0 where that is 0 / 0. Of two classes it is
    `(TP * TN - FP * FN) / sqrt((TP + FP) * (TP + FN) * (TN + FP) * (TN + FN))`.

    Args:
        num_classes: how many classes there are, at least 2.
        name: the metric's name.
        dtype: of the counts; float32 counts exactly up to 16,777,216 rows.

    Call arguments:
        y_true: int `(batch,)` or `(batch, 1)`, labels.
        y_pred: float `(batch, num_classes)`, logits or probabilities, or int `(batch,)`, labels.
        sample_weight: `(batch,)`, how much each row counts.

    The result is NaN once a label was no class.

    Raises:
        TypeError, ValueError: an argument out of range; shapes other than these.

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
        self.num_classes = check_num_classes("MatthewsCorrelation", num_classes)
        self.counts = self.add_variable((self.num_classes, self.num_classes), "zeros", name="counts")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        true, predicted, known = read_classes("MatthewsCorrelation", self.num_classes, y_true, y_pred)
        weight = row_weights("MatthewsCorrelation", true, sample_weight, self.dtype)
        weight = ops.where(known | (weight == 0), weight, float("nan"))
        cell = true * self.num_classes + predicted
        added = ops.segment_sum(weight, cell, num_segments=self.num_classes**2)
        self.counts.assign_add(ops.reshape(added, (self.num_classes, self.num_classes)))  # [C, C], a row a true class

    def result(self) -> Any:
        """The correlation of all batches, a scalar."""
        counts = self.counts.value
        total, right = ops.sum(counts), ops.sum(counts * ops.eye(self.num_classes, dtype=self.dtype), axis=0)
        true, predicted = ops.sum(counts, axis=1), ops.sum(counts, axis=0)  # [C]
        # What is missed, wrongly found and rightly left out, a class: differences of counts are exact in float32,
        # those of their products are not.
        missed, wrong = true - right, predicted - right
        left_out = (total - true) - wrong
        right, true, predicted, missed, wrong, left_out = (
            ops.divide_no_nan(part, total) for part in (right, true, predicted, missed, wrong, left_out)
        )
        covariance = ops.sum(right * left_out - missed * wrong)
        spread = ops.sum(true * (left_out + wrong)) * ops.sum(predicted * (left_out + missed))
        return ops.divide_no_nan(covariance, ops.sqrt(spread))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "num_classes": self.num_classes}
