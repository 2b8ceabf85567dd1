"""`CalibrationError`: how far probabilities are from the share of predictions that are right."""

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.metrics.class_metrics import read_classes, row_weights


@register
class CalibrationError(keras.metrics.Metric):
    """The expected calibration error (ECE) over all batches, from labels and logits.

    Predictions are sorted by their probability into bins of equal width. The error is the mean difference between the
    probability and the share of right predictions of a bin, weighted by its number of predictions: 0 if of all
    predictions with a probability of 0.8 eight in ten are right.

    Args:
        num_bins: the number of bins.
        multi_label: whether a text may have any number of classes. Every class of a text then counts as a prediction,
            with the probability that the text has it.
        name: the metric's name.
        dtype: the dtype of the counts; float32 counts exactly up to 16,777,216.

    Call arguments:
        y_true: int `(batch,)` or `(batch, 1)`, labels; 0 and 1 `(batch, classes)` with `multi_label`.
        y_pred: float `(batch, classes)`, logits.
        sample_weight: `(batch,)`, the weight of each row.

    The result is NaN after a label that is not a class.

    Raises:
        TypeError, ValueError: an argument out of range; other shapes.

    Examples:
        >>> metric = CalibrationError()
        >>> metric.update_state([1, 0], [[0.0, 4.0], [0.0, 4.0]])  # 98 % sure both times, right once
        >>> round(float(metric.result()), 2)
        0.48

    References:
        Guo et al. 2017, On Calibration of Modern Neural Networks, arXiv:1706.04599, equation 3.
    """

    def __init__(
        self,
        num_bins: int = 15,
        *,
        multi_label: bool = False,
        name: str = "calibration_error",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.num_bins = checks.positive_integer("CalibrationError", "num_bins", num_bins)
        self.multi_label = checks.boolean("CalibrationError", "multi_label", multi_label)
        self.counts = self.add_variable((num_bins,), "zeros", name="counts")
        self.probabilities = self.add_variable((num_bins,), "zeros", name="probabilities")
        self.right = self.add_variable((num_bins,), "zeros", name="right")

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        logits = ops.cast(y_pred, self.dtype)
        if len(logits.shape) != 2:
            raise ValueError(
                checks.message("CalibrationError", "y_pred", "be logits (batch, classes)", tuple(logits.shape))
            )
        if self.multi_label:
            right = ops.cast(y_true, self.dtype)
            if tuple(right.shape[1:]) != tuple(logits.shape[1:]):
                rule = f"be 0 and 1, (batch, {logits.shape[1]})"
                raise ValueError(checks.message("CalibrationError", "y_true", rule, tuple(right.shape)))
            right = ops.where((right == 0) | (right == 1), right, float("nan"))
            probability = ops.sigmoid(logits)
        else:
            true, predicted, known = read_classes("CalibrationError", logits.shape[1], y_true, logits)
            right = ops.where(known, ops.cast(true == predicted, self.dtype), float("nan"))[:, None]
            chosen = ops.one_hot(predicted, logits.shape[1], dtype=self.dtype)
            probability = ops.sum(ops.softmax(logits, axis=-1) * chosen, axis=-1, keepdims=True)
        weight = row_weights("CalibrationError", right[:, 0], sample_weight, self.dtype)[:, None]
        right = ops.where(weight == 0, 0.0, right)  # a row of weight 0 may contain anything
        weight = ops.reshape(ops.broadcast_to(weight, ops.shape(right)), (-1,))
        right, probability = ops.reshape(right, (-1,)), ops.reshape(probability, (-1,))
        bins = ops.clip(ops.cast(ops.ceil(probability * self.num_bins), "int32") - 1, 0, self.num_bins - 1)
        in_bin = ops.one_hot(bins, self.num_bins, dtype=self.dtype)  # [predictions, bins]
        for total, value in ((self.counts, 1.0), (self.probabilities, probability), (self.right, right)):
            total.assign_add(ops.matmul(weight * value, in_bin))

    def result(self) -> Any:
        """The error of all batches, a scalar in [0, 1]; 0 before the first."""
        difference = ops.sum(ops.abs(self.probabilities - self.right))
        return ops.divide_no_nan(difference, ops.sum(self.counts))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **constructor_arguments(CalibrationError, self)}
