"""Metrics of classes, from integer labels and logits: F1 score and Matthews correlation coefficient (MCC)."""

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor

AVERAGES = ("binary", "macro", "micro", "weighted")


@register
class F1Score(keras.metrics.Metric):
    """The F1 of classes over all batches, from integer labels and logits.

    A class's F1 is `2 * correct / (gold + predicted)`. As in scikit-learn, "macro" ignores a class that is neither in
    the labels nor in the predictions; with `multi_label` it counts as 0. `keras.metrics.F1Score` takes one-hot labels
    and probabilities, and always counts such a class as 0.

    Args:
        num_classes: the number of classes, at least 2.
        average: "binary" is the F1 of class 1 of two; "macro" the mean over the classes; "weighted" the mean weighted
            by the number of labels of each class; "micro" the F1 of all classes counted together.
        multi_label: whether a text may have any number of classes. Labels are then 0 and 1, one column per class, and a
            logit above 0 predicts its class.
        name: the metric's name.
        dtype: the dtype of the counts; float32 counts exactly up to 16,777,216.

    Call arguments:
        y_true: int `(batch,)` or `(batch, 1)`, labels; `(batch, num_classes)` with `multi_label`.
        y_pred: float `(batch, num_classes)`, logits, or int `(batch,)`, labels.
        sample_weight: `(batch,)`, the weight of each row.

    The result is 0 if nothing is right, and NaN after a label that is not a class.

    Raises:
        TypeError, ValueError: an argument out of range; other shapes.

    Examples:
        >>> metric = F1Score(2, average="binary")
        >>> metric.update_state([1, 1, 0], [[0.1, 0.7], [0.9, 0.2], [0.5, 0.6]])
        >>> float(metric.result())
        0.5

    References:
        `sklearn.metrics.f1_score`, with `zero_division=0`.
    """

    def __init__(
        self,
        num_classes: int,
        average: str = "macro",
        *,
        multi_label: bool = False,
        name: str = "f1",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.num_classes = checks.integer("F1Score", "num_classes", num_classes, smallest=2)
        self.average = checks.one_of("F1Score", "average", average, AVERAGES)
        self.multi_label = checks.boolean("F1Score", "multi_label", multi_label)
        if average == "binary" and (num_classes != 2 or multi_label):
            rule = 'be "macro", "micro" or "weighted" unless there are two classes and one label per text'
            raise ValueError(checks.message("F1Score", "average", rule, average))
        self.correct = self.add_variable((num_classes,), "zeros", name="correct")
        self.gold = self.add_variable((num_classes,), "zeros", name="gold")
        self.predicted = self.add_variable((num_classes,), "zeros", name="predicted")

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        true, predicted = self._indicators(y_true, y_pred)  # [B, C]
        weight = row_weights("F1Score", true[:, 0], sample_weight, self.dtype)[:, None]
        # A row of weight 0 may contain anything.
        for count, marks in ((self.correct, true * predicted), (self.gold, true), (self.predicted, predicted)):
            count.assign_add(ops.sum(ops.where(weight == 0, 0.0, weight * marks), axis=0))

    def _indicators(self, y_true: Tensor, y_pred: Tensor) -> tuple[Any, Any]:
        """0 and 1, one column for each class; NaN in rows with labels that are not classes."""
        if not self.multi_label:
            true, predicted, known = read_classes("F1Score", self.num_classes, y_true, y_pred)
            true, predicted = (ops.one_hot(ids, self.num_classes, dtype=self.dtype) for ids in (true, predicted))
        else:
            for argument, value in (("y_true", y_true), ("y_pred", y_pred)):
                shape = tuple(ops.convert_to_tensor(value).shape)
                if len(shape) != 2 or shape[1] not in (None, self.num_classes):
                    rule = f"be (batch, {self.num_classes})"
                    raise ValueError(checks.message("F1Score", argument, rule, shape))
            true = ops.cast(y_true, self.dtype)
            predicted = ops.cast(ops.cast(y_pred, self.dtype) > 0, self.dtype)
            known = ops.all((true == 0) | (true == 1), axis=1)
        return ops.where(known[:, None], true, float("nan")), predicted

    def result(self) -> Any:
        """The F1 of all batches, a scalar."""
        correct, gold, predicted = self.correct.value, self.gold.value, self.predicted.value
        if self.average == "micro":
            return ops.divide_no_nan(2 * ops.sum(correct), ops.sum(gold) + ops.sum(predicted))
        scores = ops.divide_no_nan(2 * correct, gold + predicted)
        if self.average == "binary":
            return scores[1]
        if self.average == "weighted":
            return ops.divide_no_nan(ops.sum(scores * gold), ops.sum(gold))
        counts = self.multi_label | (gold + predicted != 0)
        return ops.divide_no_nan(ops.sum(scores), ops.sum(ops.cast(counts, self.dtype)))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **constructor_arguments(F1Score, self)}


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

    def __init__(
        self, num_classes: int = 2, name: str = "matthews_correlation", *, dtype: str | keras.DTypePolicy | None = None
    ):
        super().__init__(name=name, dtype=dtype)
        self.num_classes = checks.integer("MatthewsCorrelation", "num_classes", num_classes, smallest=2)
        self.counts = self.add_variable((self.num_classes, self.num_classes), "zeros", name="counts")

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        true, predicted, known = read_classes("MatthewsCorrelation", self.num_classes, y_true, y_pred)
        weight = row_weights("MatthewsCorrelation", true, sample_weight, self.dtype)
        weight = ops.where(known | (weight == 0), weight, float("nan"))
        cell = true * self.num_classes + predicted
        added = ops.segment_sum(weight, cell, num_segments=self.num_classes**2)
        self.counts.assign_add(ops.reshape(added, self.counts.shape))  # [C, C], one row for each true class

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


def read_classes(owner: str, num_classes: int, y_true: Any, y_pred: Any) -> tuple[Any, Any, Any]:
    """Converts labels, and logits or predicted labels, to one class per row.

    Args:
        owner: the metric to name in errors.
        num_classes: the number of classes.
        y_true: int `(batch,)` or `(batch, 1)`.
        y_pred: float `(batch, num_classes)`, logits, or int `(batch,)` or `(batch, 1)`, labels.

    Returns:
        Both int32 `(batch,)`, 0 for values that are not classes; and bool `(batch,)`, whether both are classes.
    """
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    y_true = read_column(owner, "y_true", y_true, "be labels (batch,) or (batch, 1)")
    is_float = keras.backend.is_float_dtype(y_pred.dtype)
    if is_float and len(y_pred.shape) == 2 and y_pred.shape[-1] in (None, num_classes):
        y_pred = ops.argmax(y_pred, axis=-1)
    elif is_float or not _is_column(y_pred):
        rule = f"be logits (batch, {num_classes}) or integer labels (batch,)"
        received = (tuple(y_pred.shape), keras.backend.standardize_dtype(y_pred.dtype))
        raise ValueError(checks.message(owner, "y_pred", rule, received))
    # -1 for fractions, which a cast would turn into labels.
    whole = ops.cast(y_true, "int32")
    y_true = ops.where(ops.cast(whole, y_true.dtype) == y_true, whole, -1)
    y_pred = ops.reshape(ops.cast(y_pred, "int32"), (-1,))
    known = (y_true >= 0) & (y_true < num_classes) & (y_pred >= 0) & (y_pred < num_classes)
    return ops.where(known, y_true, 0), ops.where(known, y_pred, 0), known


def row_weights(owner: str, rows: Tensor, sample_weight: Any, dtype: str) -> Any:
    """One weight for each row of `rows`, `(batch,)`; ones if `sample_weight` is None."""
    if sample_weight is None:
        return ops.ones_like(rows, dtype=dtype)
    return read_column(owner, "sample_weight", ops.cast(sample_weight, dtype), "be (batch,) or (batch, 1)")


def read_column(owner: str, argument: str, values: Tensor, rule: str) -> Any:
    """Values `(batch,)` or `(batch, 1)` as `(batch,)`; ValueError with the rule otherwise."""
    if not _is_column(values):
        raise ValueError(checks.message(owner, argument, rule, tuple(values.shape)))
    return ops.reshape(values, (-1,))


def _is_column(values: Tensor) -> bool:
    return len(values.shape) == 1 or (len(values.shape) == 2 and values.shape[-1] in (None, 1))
