"""Labels of texts: one class, several classes, numbers, or a relevance.

Each kind encodes labels for its loss, has that loss and its metrics, and decodes logits into answers.
"""

from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks.labels.classes import OWNER
from keras_bert_layers.tasks.labels.multi_label import MultiLabel
from keras_bert_layers.tasks.labels.regression import Regression, Relevance
from keras_bert_layers.tasks.labels.single_label import SingleLabel

__all__ = ["MultiLabel", "Regression", "Relevance", "SingleLabel", "make_labels"]

PROBLEM_TYPES = {
    "single_label_classification": SingleLabel,
    "multi_label_classification": MultiLabel,
    "regression": Regression,
}


def make_labels(
    problem_type: str, num_classes: int | None, *, class_names: Sequence[str] | None, threshold: Any
) -> SingleLabel | MultiLabel | Regression:
    """The labels of a problem type, with the arguments checked."""
    kind = PROBLEM_TYPES[checks.one_of(OWNER, "problem_type", problem_type, PROBLEM_TYPES)]
    if kind is MultiLabel:
        return MultiLabel(num_classes, class_names, threshold)
    if threshold is not None:
        rule = 'be None unless problem_type="multi_label_classification"'
        raise ValueError(checks.message(OWNER, "threshold", rule, threshold))
    return kind(num_classes, class_names)
