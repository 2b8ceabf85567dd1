"""One number a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.metrics import PearsonCorrelation
from keras_bert_layers.tasks.labels.classes import OWNER, no_class_weight


class Regression:
    """One number a text: mean squared error."""

    num_classes = 1
    class_names = None
    threshold = None

    def __init__(self, num_classes: int | None, class_names: Sequence[str] | None):
        if num_classes not in (None, 1):
            raise ValueError(checks.message(OWNER, "num_classes", "be 1 in a regression", num_classes))
        if class_names is not None:
            raise ValueError(checks.message(OWNER, "class_names", "be None in a regression", class_names))

    def loss(self) -> keras.losses.Loss:
        """The mean squared error."""
        return keras.losses.MeanSquaredError()

    def metrics(self) -> list[keras.metrics.Metric]:
        """The mean absolute error, and Pearson's correlation."""
        return [keras.metrics.MeanAbsoluteError(name="mean_absolute_error"), PearsonCorrelation()]

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Numbers `(rows,)` as float32, checked row by row."""
        if y.dtype.kind not in "biuf":
            cure = "For numbers in strings: `[float(label) for label in labels]`."
            raise TypeError(checks.message(OWNER, "y", "hold numbers", str(y.dtype), cure))
        if y.ndim != 1 and y.shape[1:] != (1,):
            raise ValueError(checks.message(OWNER, "y", "hold one number a text", y.shape))
        y = y.reshape(-1).astype(np.float32)
        checks.every_row(OWNER, "every label must be a finite number", y, np.isfinite(y))
        return y

    def encode_in_graph(self, y: Any) -> Any:
        """Numbers unchanged; names are refused."""
        if y.dtype == tf.string:
            raise ValueError(checks.message(OWNER, "y", "hold numbers in a regression", y.dtype.name))
        return y

    def class_weight(self, class_weight: Mapping[str | int, float]) -> dict[int, float]:
        """Refused: there are no classes."""
        raise no_class_weight("a regression has no classes")

    def decode(self, logits: Any) -> dict[str, tf.Tensor]:
        """`score`."""
        return {"score": tf.cast(logits, tf.float32)[:, 0]}
