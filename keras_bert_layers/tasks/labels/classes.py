"""`Classes`: the number and the names of classes, the base of all labels but `Relevance`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import check_in_graph
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor

OWNER = "BertClassifier"


class Classes:
    """The number of classes, and their names."""

    #: The fewest there may be.
    least = 2
    #: Why class weights have no meaning, for the error.
    without_class_weight = ""

    def __init__(self, num_classes: int | None, class_names: Sequence[str] | None):
        if num_classes is None and class_names is not None:
            num_classes = len(checks.ordered(OWNER, "class_names", class_names))
        self.num_classes = checks.positive_integer(OWNER, "num_classes", num_classes)
        if self.num_classes < self.least:
            cure = 'For one number per text: problem_type="regression".'
            raise ValueError(checks.message(OWNER, "num_classes", "be at least 2", num_classes, cure))
        self.class_names = class_names

    @property
    def class_names(self) -> list[str] | None:
        """One name per class, or None."""
        return self._class_names

    @class_names.setter
    def class_names(self, class_names: Sequence[str] | None) -> None:
        self._class_names = None if class_names is None else self._checked_names(class_names)

    def _checked_names(self, class_names: Sequence[str]) -> list[str]:
        checks.ordered(OWNER, "class_names", class_names)
        if len(class_names) != self.num_classes or len(set(class_names)) != self.num_classes:
            rule = f"hold {self.num_classes} different names, one for each class"
            raise ValueError(checks.message(OWNER, "class_names", rule, list(class_names)))
        if not all(isinstance(class_name, str) and class_name for class_name in class_names):
            raise TypeError(checks.message(OWNER, "class_names", "be strings, none empty", list(class_names)))
        return list(class_names)

    @property
    def answers(self) -> list[str]:
        """The class names of the served model: `"0"`, `"1"` and so on where none were given."""
        return self.class_names or [str(index) for index in range(self.num_classes)]

    def as_given(self, names: Tensor) -> Any:
        """The labels of an answer as a user gives them: one name or an array of them, or indices without names."""
        return names if self.class_names is not None else np.asarray(names).astype(np.int64)[()]

    def class_weight(self, class_weight: str | Mapping[Any, float], y: Any = None) -> dict[int, float]:
        """Class weights as Keras takes them; refused where they have no meaning."""
        cure = "Give each text its own weight with `sample_weight`."
        rule = f"be None, as {self.without_class_weight}"
        raise ValueError(checks.message(OWNER, "class_weight", rule, class_weight, cure))

    def for_loss(self, y: Any, y_pred: Any, loss: str | Callable[..., Any] | Mapping[str, Any]) -> Any:
        """Labels of a batch in the form that a compiled loss takes."""
        return y

    def for_metrics(self, y: Tensor, y_pred: Tensor, metrics: Sequence[Any] | Mapping[str, Any]) -> Any:
        """Labels of a batch in the form that compiled metrics take."""
        return y

    def known_names(self) -> list[str]:
        """The class names; ValueError if there are none, for labels that are names."""
        if self.class_names is None:
            raise ValueError(
                f"`{OWNER}`: labels must be integers where no class names are known. Received: strings. "
                "Give `class_names` to the classifier."
            )
        return self.class_names

    def unknown(self, label: object, row: int) -> ValueError:
        """The error for an unknown class name."""
        return ValueError(
            f"`{OWNER}`: every label must be one of {self.class_names}. Received: {label!r} in row {row}."
        )

    def matches(self, names: tf.Tensor, *, or_empty: bool = False) -> tf.Tensor:
        """Whether each name is that of each class, bool `(..., classes)`; an unknown name is an error in graph."""
        class_names = self.known_names()
        matches = tf.equal(names[..., tf.newaxis], tf.constant(class_names))
        known = tf.reduce_any(matches, axis=-1)
        if or_empty:
            known |= tf.equal(names, "")
        message = [f"`{OWNER}`: every label must be one of {class_names}. Received: ", names]
        return check_in_graph(matches, tf.reduce_all(known), message)


def as_text(label: object) -> Any:
    """A label as `str` if it is bytes."""
    return label.decode() if isinstance(label, bytes) else label
