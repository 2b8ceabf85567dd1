"""`SingleLabel`: labels of one class per text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.decoding import decode_labels
from keras_bert_layers.export import onnx
from keras_bert_layers.metrics import CalibrationError, F1Score, MatthewsCorrelation
from keras_bert_layers.tasks.labels.classes import OWNER, Classes, as_text
from keras_bert_layers.tasks.objectives.losses import takes_columns
from keras_bert_layers.tasks.objectives.metrics import has_columns, one_hot, take_indices

# float32 shares of a teacher's softmax add up to 1 within some 1e-6.
_SUM_TOLERANCE = 1e-3


class SingleLabel(Classes):
    """Labels of one class per text: integers or names, softmax, cross entropy."""

    threshold = None

    def loss(self) -> keras.losses.Loss:
        """Cross entropy of the logits."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def metrics(self) -> list[keras.metrics.Metric]:
        """The share of correct predictions, named `"accuracy"`."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Names or integers `(rows,)` as integers, checked row by row; one column per class as it is."""
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.dtype.kind in "SO":
            ids = {class_name: index for index, class_name in enumerate(self.known_names())}
            names = [as_text(label) for label in y]
            for row, label in enumerate(names):
                if not isinstance(label, str) or label not in ids:
                    raise self.unknown(label, row)
            return np.array([ids[label] for label in names], np.int32)
        if y.ndim == 2 and y.dtype.kind in "biuf":
            return self._checked_columns(y)
        if y.ndim == 1:
            is_right = (y >= 0) & (y < self.num_classes) & (y == np.floor(y))  # a missing label, NaN, is wrong
            rule = f"every label must be an integer, at least 0 and less than num_classes={self.num_classes}"
            counts_from_1 = y.size and 0 < y.min() <= y.max() <= self.num_classes
            cure = "Labels count from 0: give `y - 1`, or names." if counts_from_1 else ""
            checks.every_row(OWNER, rule, y, is_right, cure)
        return y

    def _checked_columns(self, y: np.ndarray) -> np.ndarray:
        """One-hot labels `(rows, classes)` as integers, shares of the classes as float32."""
        if y.shape[1] != self.num_classes:
            rule = f"hold one class per text, or one column for each of {self.num_classes} classes"
            raise ValueError(checks.message(OWNER, "y", rule, checks.Shown(f"shape {y.shape}")))
        is_right = (y >= 0).all(axis=1) & (np.abs(y.sum(axis=1) - 1) < _SUM_TOLERANCE)
        cure = 'For several classes per text: problem_type="multi_label_classification".'
        checks.every_row(OWNER, "the columns of a label must be at least 0, with a sum of 1", y, is_right, cure)
        return y.astype(np.int32 if ((y == 0) | (y == 1)).all() else np.float32)

    def for_loss(self, y: Any, y_pred: Any, loss: str | Callable[..., Any] | Mapping[str, Any]) -> Any:
        """One column per class for Keras's losses that compare these; class indices for the sparse ones.

        Raises:
            ValueError: shares of classes, which a sparse loss cannot take.
        """
        if takes_columns(loss):
            return one_hot(y, y_pred)
        if not has_columns(y, y_pred) or not isinstance(loss, keras.losses.SparseCategoricalCrossentropy):
            return y
        if not keras.backend.is_int_dtype(y.dtype):
            cure = 'Compile with loss="categorical_crossentropy", or hand over one-hot labels as integers.'
            rule = "be class indices under this loss"
            raise ValueError(checks.message(OWNER, "y", rule, checks.Shown(f"{y.dtype} {tuple(y.shape)}"), cure))
        return keras.ops.argmax(y, axis=-1)

    def for_metrics(self, y: Tensor, y_pred: Tensor, metrics: Sequence[Any] | Mapping[str, Any]) -> Any:
        """Class indices, if one of the metrics compares these; of shares, the class with the largest."""
        return keras.ops.argmax(y, axis=-1) if has_columns(y, y_pred) and take_indices(metrics) else y

    def encode_in_graph(self, y: Tensor) -> Any:
        """Names `(batch,)` as integers; integers unchanged."""
        if y.dtype != tf.string:
            return y
        return tf.argmax(self.matches(tf.reshape(y, [-1])), axis=-1, output_type=tf.int32)

    def named_metrics(self) -> list[keras.metrics.Metric]:
        """The mean F1 of the classes, Matthews's correlation and the calibration error."""
        return [F1Score(self.num_classes), MatthewsCorrelation(self.num_classes), CalibrationError()]

    def class_weight(self, class_weight: str | Mapping[Any, float], y: Any = None) -> dict[int, float]:
        """Weights by class name or index as one weight for each index; 1 for classes that are left out.

        `"balanced"` gives a class the number of encoded labels `y` divided by its own and by the number of classes, as
        scikit-learn does.
        """
        if isinstance(class_weight, str):
            if class_weight != "balanced" or y is None:
                cure = "Of a dataset, count the labels yourself: `{name: weight}`."
                rule = 'be a dictionary, or "balanced" beside labels in `y`'
                raise ValueError(checks.message(OWNER, "class_weight", rule, class_weight, cure))
            y = np.asarray(y)
            counts = y.sum(axis=0) if y.ndim == 2 else np.bincount(y.astype(int), minlength=self.num_classes)
            present = np.flatnonzero(counts)
            class_weight = {int(index): counts.sum() / (len(present) * counts[index]) for index in present}
        indices: dict[Any, int] = {index: index for index in range(self.num_classes)}
        indices |= {class_name: index for index, class_name in enumerate(self.class_names or ())}
        if any(key not in indices for key in class_weight):
            rule = f"have keys among {list(indices)}"
            raise ValueError(checks.message(OWNER, "class_weight", rule, dict(class_weight)))
        return dict.fromkeys(range(self.num_classes), 1.0) | {
            indices[key]: float(weight) for key, weight in class_weight.items()
        }

    def onnx_answers(self, logits: onnx.Tensor) -> dict[str, onnx.Answer]:
        """`label` and `probabilities` of an ONNX file."""
        label = logits.graph.constant(self.answers).take(onnx.argmax(logits))
        probabilities = onnx.softmax(logits)
        return {
            "label": onnx.Answer(label, (None,)),
            "probabilities": onnx.Answer(probabilities, (None, self.num_classes)),
        }

    def decode(self, logits: Tensor) -> dict[str, tf.Tensor]:
        """`label` and `probabilities`."""
        return decode_labels(logits, self.answers)
