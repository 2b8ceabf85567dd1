"""`MultiLabel`: labels of any number of classes per text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.decoding import decode_label_sets
from keras_bert_layers.export import onnx
from keras_bert_layers.metrics import CalibrationError, F1Score
from keras_bert_layers.tasks.labels.classes import OWNER, Classes, as_text

THRESHOLD = 0.5

Threshold = float | Sequence[float]


class MultiLabel(Classes):
    """Labels of any number of classes per text: lists of names or 0 and 1 in columns, sigmoid, binary cross entropy."""

    without_class_weight = "a text with several labels does not have one class"

    def __init__(self, num_classes: int | None, class_names: Sequence[str] | None, threshold: Threshold | None):
        super().__init__(num_classes, class_names)
        self.threshold = threshold

    @property
    def threshold(self) -> Threshold:
        """A class is given where its probability is above this: one number, or a list of one for each class."""
        return self._threshold

    @threshold.setter
    def threshold(self, threshold: Threshold | None) -> None:
        if isinstance(threshold, Sequence | np.ndarray) and not isinstance(threshold, str):
            rule = f"be one number, or one for each of {self.num_classes} classes"
            checks.length(OWNER, "threshold", threshold, self.num_classes, rule=rule, unit="numbers")
            self._threshold: Threshold = [checks.share(OWNER, "threshold", value) for value in threshold]
        else:
            self._threshold = THRESHOLD if threshold is None else checks.fraction(OWNER, "threshold", threshold)

    def as_given(self, names: Any) -> Any:
        """A list for each row of an answer, or for the only one, without what pads it."""
        if names.ndim > 1:
            return [self.as_given(row) for row in names]
        return [name if self.class_names else int(name) for name in names if name]

    def loss(self) -> keras.losses.Loss:
        """Binary cross entropy of the logits, the mean over texts and classes."""
        return keras.losses.BinaryCrossentropy(from_logits=True)

    def metrics(self) -> list[keras.metrics.Metric]:
        """F1 of all labels together, a label given where its probability is above a half."""
        return [F1Score(self.num_classes, "micro", multi_label=True)]

    def named_metrics(self) -> list[keras.metrics.Metric]:
        """The calibration error."""
        return [CalibrationError(multi_label=True)]

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Lists of names, or one column per class, as float32 `(rows, classes)`, checked row by row."""
        if y.ndim == 2 and y.dtype.kind in "biuf" and y.shape[1] == self.num_classes:
            y = y.astype(np.float32)
            is_right = ((y >= 0) & (y <= 1)).all(axis=1)
            checks.every_row(OWNER, "the columns of labels must be between 0 and 1", y, is_right)
            return y
        is_table = y.ndim == 2 and (y.dtype.kind in "SO" or y.shape[1] == 0)
        if not is_table and not (y.ndim == 1 and y.dtype == object):
            rule = f"hold a list of names for each text, or numbers (rows, {self.num_classes})"
            raise ValueError(checks.message(OWNER, "y", rule, f"{y.dtype} {y.shape}"))
        encoded = np.zeros((len(y), self.num_classes), np.float32)
        ids = {class_name: index for index, class_name in enumerate(self.known_names())}
        for row, labels in enumerate(y):
            if isinstance(labels, str | bytes) or not hasattr(labels, "__iter__"):
                raise TypeError(f"`{OWNER}`: the labels of a text must be a list. Received: {labels!r} in row {row}.")
            for label in map(as_text, labels):
                if label not in ids and label != "":  # rows of an array are padded with empty strings
                    raise self.unknown(label, row)
                if label:
                    encoded[row, ids[label]] = 1
        return encoded

    def encode_in_graph(self, y: Tensor) -> tf.Tensor:
        """Names `(batch, labels)`, ragged or padded with "", as float32 `(batch, classes)`; numbers unchanged."""
        if y.dtype != tf.string:
            return y
        if isinstance(y, tf.RaggedTensor):
            y = y.to_tensor(default_value="")
        if y.shape.rank != 2:
            rule = "be (batch, labels), or ragged"
            raise ValueError(checks.message(OWNER, "y", f"{rule} where it holds names", tuple(y.shape)))
        return tf.cast(tf.reduce_any(self.matches(y, or_empty=True), axis=1), tf.float32)

    def onnx_answers(self, logits: onnx.Tensor) -> dict[str, onnx.Answer]:
        """`label` and `probabilities` of an ONNX file."""
        graph = logits.graph
        probabilities = onnx.activation(logits, "sigmoid")
        count, kinds = graph.constant([self.num_classes]), [onnx.FLOAT, onnx.INT64]
        _, order = graph.add("TopK", probabilities, count, axis=-1, outputs=kinds)  # [B, C]
        is_label = probabilities > np.asarray(self.threshold, np.float32)
        chosen = graph.add("GatherElements", is_label, order, axis=-1)
        names = chosen.where(graph.constant(self.answers).take(order), "")
        widest = chosen.cast(onnx.INT64).reduced("Max", 0).reduced("Sum", 0, keepdims=True)
        return {
            "label": onnx.Answer(names.slice(0, widest, 1), (None, None)),
            "probabilities": onnx.Answer(probabilities, (None, self.num_classes)),
        }

    def decode(self, logits: Tensor) -> dict[str, tf.Tensor]:
        """`label`, the classes above the threshold, and `probabilities`."""
        return decode_label_sets(logits, self.answers, threshold=self.threshold)
