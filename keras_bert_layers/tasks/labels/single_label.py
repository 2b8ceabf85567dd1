"""One class a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.decoding import decode_labels
from keras_bert_layers.tasks.labels.classes import OWNER, Classes, as_text


class SingleLabel(Classes):
    """One class a text: integers or names, softmax, cross entropy."""

    threshold = None

    def loss(self) -> keras.losses.Loss:
        """Cross entropy of the logits."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def metrics(self) -> list[keras.metrics.Metric]:
        """The share of correct predictions, named `"accuracy"`."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Names or integers `(rows,)` as integers, checked row by row."""
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.dtype.kind in "SO":
            ids = {class_name: index for index, class_name in enumerate(self.known_names())}
            names = [as_text(label) for label in y]
            for row, label in enumerate(names):
                if not isinstance(label, str) or label not in ids:
                    raise self.unknown(label, row)
            return np.array([ids[label] for label in names], np.int32)
        if y.ndim == 1:
            is_right = (y >= 0) & (y < self.num_classes) & (y == np.floor(y))  # a missing label, NaN, is wrong
            rule = f"every label must be an integer, at least 0 and less than num_classes={self.num_classes}"
            checks.every_row(OWNER, rule, y, is_right)
        return y

    def encode_in_graph(self, y: Any) -> Any:
        """Names `(batch,)` as integers; integers unchanged."""
        if y.dtype != tf.string:
            return y
        return tf.argmax(self.matches(tf.reshape(y, [-1])), axis=-1, output_type=tf.int32)

    def class_weight(self, class_weight: Mapping[str | int, float]) -> dict[int, float]:
        """Weights by class name or index as one weight for each index; 1 for classes that are left out."""
        indices: dict[Any, int] = {index: index for index in range(self.num_classes)}
        indices |= {class_name: index for index, class_name in enumerate(self.class_names or ())}
        if any(key not in indices for key in class_weight):
            rule = f"have keys among {list(indices)}"
            raise ValueError(checks.message(OWNER, "class_weight", rule, dict(class_weight)))
        return dict.fromkeys(range(self.num_classes), 1.0) | {
            indices[key]: float(weight) for key, weight in class_weight.items()
        }

    def decode(self, logits: Any) -> dict[str, tf.Tensor]:
        """`label` and `probabilities`."""
        return decode_labels(logits, self.answers)
