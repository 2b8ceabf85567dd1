"""`F1Score`: the F1 of classes, from integer labels and logits."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.arguments import constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers.metrics._classes import read_classes, row_weights

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
        multi_label: whether a text may have any number of classes. Labels are then 0 and 1, one column a class, and a
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
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.num_classes = checks.integer("F1Score", "num_classes", num_classes, smallest=2)
        self.average = checks.one_of("F1Score", "average", average, AVERAGES)
        self.multi_label = checks.boolean("F1Score", "multi_label", multi_label)
        if average == "binary" and (num_classes != 2 or multi_label):
            rule = 'be "macro", "micro" or "weighted" unless there are two classes and one label a text'
            raise ValueError(checks.message("F1Score", "average", rule, average))
        self.correct = self.add_variable((num_classes,), "zeros", name="correct")
        self.gold = self.add_variable((num_classes,), "zeros", name="gold")
        self.predicted = self.add_variable((num_classes,), "zeros", name="predicted")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        true, predicted = self._indicators(y_true, y_pred)  # [B, C]
        weight = row_weights("F1Score", true[:, 0], sample_weight, self.dtype)[:, None]
        # A row of weight 0 may contain anything.
        for count, marks in ((self.correct, true * predicted), (self.gold, true), (self.predicted, predicted)):
            count.assign_add(ops.sum(ops.where(weight == 0, 0.0, weight * marks), axis=0))

    def _indicators(self, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
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
