"""What a classifier's labels are: one class a text, any number of classes, or a number.

Each kind says how labels become what the loss takes, with which loss and metrics, and what the logits answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks._problems.classes import OWNER
from keras_bert_layers.tasks._problems.multi_label import MultiLabel
from keras_bert_layers.tasks._problems.regression import Regression
from keras_bert_layers.tasks._problems.single_label import SingleLabel

__all__ = ["MultiLabel", "Regression", "SingleLabel", "make_problem"]

PROBLEMS = {
    "single_label_classification": SingleLabel,
    "multi_label_classification": MultiLabel,
    "regression": Regression,
}


def make_problem(
    problem_type: str, num_classes: int | None, *, class_names: Sequence[str] | None, threshold: float | None
) -> SingleLabel | MultiLabel | Regression:
    """The problem of a name, its arguments checked."""
    kind = PROBLEMS[checks.one_of(OWNER, "problem_type", problem_type, PROBLEMS)]
    if kind is MultiLabel:
        return MultiLabel(num_classes, class_names, threshold)
    if threshold is not None:
        rule = 'be None unless problem_type="multi_label_classification"'
        raise ValueError(checks.message(OWNER, "threshold", rule, threshold))
    return kind(num_classes, class_names)
