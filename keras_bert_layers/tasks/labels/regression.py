"""`Regression` and `Relevance`: labels that are numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.config import ACTIVATIONS
from keras_bert_layers.export import onnx
from keras_bert_layers.losses.ranking import ABSENT_GRADE
from keras_bert_layers.metrics import PearsonCorrelation, SpearmanCorrelation
from keras_bert_layers.tasks.labels.classes import OWNER, Classes
from keras_bert_layers.tasks.objectives.metrics import PairAUC


class Regression(Classes):
    """Labels of one number per text, or one for each name: mean squared error."""

    threshold = None
    least = 1
    without_class_weight = "a regression has no classes"

    def __init__(self, num_classes: int | None, class_names: Sequence[str] | None):
        if class_names is not None and num_classes in (None, 1):
            cure = "To name several numbers, give `num_classes` too."
            rule = "be None in a regression of one number"
            raise ValueError(checks.message(OWNER, "class_names", rule, class_names, cure))
        super().__init__(1 if num_classes is None else num_classes, class_names)

    def loss(self) -> keras.losses.Loss:
        """The mean squared error."""
        return keras.losses.MeanSquaredError()

    def metrics(self) -> list[keras.metrics.Metric]:
        """The mean absolute error, and of single numbers Pearson's correlation."""
        error = keras.metrics.MeanAbsoluteError(name="mean_absolute_error")
        return [error, PearsonCorrelation()] if self.num_classes == 1 else [error]

    def named_metrics(self) -> list[keras.metrics.Metric]:
        """Spearman's correlation of single numbers."""
        return [SpearmanCorrelation()] if self.num_classes == 1 else []

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Numbers `(rows,)`, or `(rows, numbers)` of several, as float32, checked row by row."""
        if y.dtype.kind not in "biuf":
            cure = "For numbers in strings: `[float(label) for label in labels]`."
            raise TypeError(checks.message(OWNER, "y", "hold numbers", str(y.dtype), cure))
        number = self.num_classes
        if y.shape[1:] != (number,) and (number > 1 or y.ndim != 1):
            rule = "hold one number per text" if number == 1 else f"hold {number} numbers per text, (rows, {number})"
            raise ValueError(checks.message(OWNER, "y", rule, y.shape))
        y = y.reshape(-1, number).astype(np.float32) if number > 1 else y.reshape(-1).astype(np.float32)
        checks.every_row(
            OWNER, "every label must be a finite number", y, np.isfinite(y.reshape(len(y), number)).all(axis=1)
        )
        return y

    def encode_in_graph(self, y: Tensor) -> Any:
        """Numbers unchanged; names are refused."""
        if y.dtype == tf.string:
            raise ValueError(checks.message(OWNER, "y", "hold numbers in a regression", y.dtype.name))
        return y

    def onnx_answers(self, logits: onnx.Tensor) -> dict[str, onnx.Answer]:
        """`score` of an ONNX file."""
        if self.num_classes > 1:
            return {"score": onnx.Answer(logits, (None, self.num_classes))}
        return {"score": onnx.Answer(logits.take(0, 1), (None,))}

    def decode(self, logits: Tensor) -> dict[str, tf.Tensor]:
        """`score`, `(batch,)`, or `(batch, numbers)` of several."""
        scores = tf.cast(logits, tf.float32)
        return {"score": scores[:, 0] if self.num_classes == 1 else scores}


_CROSS_ENCODER = "BertCrossEncoder"


# Activations of `config.ACTIVATIONS` that `tf.nn` does not have, or with another slope.
_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda x: x + 0,
    "gelu_erf": lambda x: tf.nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: tf.nn.gelu(x, approximate=True),
    "gelu_10": lambda x: tf.clip_by_value(tf.nn.gelu(x, approximate=False), -10, 10),
    "quick_gelu": lambda x: x * tf.sigmoid(1.702 * x),
    "leaky_relu": lambda x: tf.nn.leaky_relu(x, alpha=0.01),
    "mish": lambda x: x * tf.tanh(tf.math.softplus(x)),
}


def _activate(activation: str, logits: Tensor) -> Any:
    """An activation of `config.ACTIVATIONS`, of TensorFlow tensors: answers are, under every backend of Keras."""
    return (_ACTIVATIONS.get(activation) or getattr(tf.nn, activation))(logits)


class Relevance:
    """Labels of one relevance in [0, 1] per row: logistic function, binary cross entropy.

    A row may also have a grade for each candidate of a query.

    Args:
        activation: turns a logit into a score, one of `config.ACTIVATIONS`; the loss is that of the logit.
    """

    def __init__(self, activation: str = "sigmoid"):
        self.activation = checks.one_of(_CROSS_ENCODER, "activation", activation, ACTIVATIONS)

    def loss(self) -> keras.losses.Loss:
        """Cross entropy of the relevance and the logistic function of the logit."""
        return keras.losses.BinaryCrossentropy(from_logits=True)

    def metrics(self) -> list[keras.metrics.Metric]:
        """The area under the ROC curve, named `"auc"`; every relevance above 0 counts as relevant."""
        return [PairAUC(from_logits=True, name="auc")]

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Relevances as float32 `(rows,)`, checked row by row."""
        column = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        rule, cure = "every relevance must be one number in [0, 1]", "Divide grades by the highest of them."
        is_number = column.dtype.kind in "biuf"
        if not is_number or column.ndim != 1:
            found = f"shape={y.shape}" if is_number else f"dtype={y.dtype}"
            raise ValueError(f"`{_CROSS_ENCODER}`: {rule}. Received: {found}. {cure}")
        column = column.astype(np.float32)
        checks.every_row(_CROSS_ENCODER, rule, column, (column >= 0) & (column <= 1), cure)
        return column

    @staticmethod
    def check_grades(grades: np.ndarray, present: np.ndarray, most: float) -> None:
        """Refuses grades `(rows, candidates)` of candidates that are not from 0 to `most`; ValueError."""
        is_right = ~present | ((grades >= 0) & (grades <= most) & np.isfinite(grades))
        rule, cure = "every grade must be a finite number of at least 0", ""
        if most == 1:
            rule = "every grade must be in [0, 1] for this loss"
            cure = "Divide grades by the highest, or compile a loss of `keras_bert_layers.losses` such as `ListNet()`."
        checks.every_row(_CROSS_ENCODER, rule, grades, is_right.all(axis=1), cure)

    @staticmethod
    def by_pair(y: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Grades `(queries, candidates)` and their weights as those of pairs, with the weight 0 where one is absent.

        The other weights are so much larger that Keras's mean over all pairs is that over those that are present.
        Labels of pairs stay unchanged.
        """
        if not in_rows(y):
            return y, y_pred, sample_weight
        weights = keras.ops.cast(y > ABSENT_GRADE, "float32")
        weights = weights / keras.ops.maximum(keras.ops.mean(weights), keras.config.epsilon())
        if sample_weight is not None:
            weights = weights * keras.ops.reshape(keras.ops.cast(sample_weight, "float32"), (-1, 1))
        return keras.ops.reshape(y, (-1, 1)), y_pred, keras.ops.reshape(weights, (-1, 1))

    def encode_in_graph(self, y: Tensor) -> Any:
        """Relevances as float32 `(batch, 1)`."""
        return tf.reshape(tf.cast(y, tf.float32), [-1, 1])

    def class_weight(self, class_weight: str | Mapping[Any, float], y: Any = None) -> Mapping[Any, float]:
        """As Keras takes them: the classes are 0 and 1."""
        if isinstance(class_weight, str):
            raise ValueError(checks.message(_CROSS_ENCODER, "class_weight", "be a dictionary", class_weight))
        return class_weight

    def decode(self, logits: Tensor) -> dict[str, tf.Tensor]:
        """`score`: the activation of the logit."""
        return {"score": self.scores(logits[:, 0])}

    def onnx_answers(self, logits: onnx.Tensor) -> dict[str, onnx.Answer]:
        """`score` of an ONNX file."""
        return {"score": onnx.Answer(onnx.activation(logits.take(0, 1), self.activation), (None,))}

    def scores(self, logits: Tensor) -> Any:
        """The scores of logits of any shape, as a TensorFlow tensor."""
        return _activate(self.activation, logits)


def in_rows(y: Any) -> bool:
    """Whether labels are grades `(queries, candidates)`, and not those of pairs."""
    return y is not None and len(y.shape) == 2 and y.shape[1] != 1
