"""How well a document answers a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.config import ACTIVATIONS

OWNER = "BertCrossEncoder"


def _activate(activation: str, logits: Any) -> Any:
    """An activation of `config.ACTIVATIONS`, of TensorFlow tensors: answers are, under every backend of Keras."""
    match activation:
        case "linear":
            return tf.identity(logits)
        case "gelu_erf" | "gelu_tanh":
            return tf.nn.gelu(logits, approximate=activation == "gelu_tanh")
        case "mish":
            return logits * tf.tanh(tf.math.softplus(logits))
        case "sigmoid" | "tanh":
            return getattr(tf, activation)(logits)
    return getattr(tf.nn, activation)(logits)


class Relevance:
    """One relevance in [0, 1] a row: logistic function, binary cross entropy.

    Args:
        activation: turns a logit into a score, one of `config.ACTIVATIONS`; the loss is that of the logit.
    """

    def __init__(self, activation: str = "sigmoid"):
        self.activation = checks.one_of(OWNER, "activation", activation, ACTIVATIONS)

    def loss(self) -> keras.losses.Loss:
        """Cross entropy of the relevance and the logistic function of the logit."""
        return keras.losses.BinaryCrossentropy(from_logits=True)

    def metrics(self) -> list[keras.metrics.Metric]:
        """The area under the ROC curve, named `"auc"`; every relevance above 0 counts as relevant."""
        return [keras.metrics.AUC(from_logits=True, name="auc")]

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Relevances as float32 `(rows,)`, checked row by row."""
        column = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        rule, cure = "every relevance must be one number in [0, 1]", "Divide grades by the highest of them."
        is_number = column.dtype.kind in "biuf"
        if not is_number or column.ndim != 1:
            found = f"shape={y.shape}" if is_number else f"dtype={y.dtype}"
            raise ValueError(f"`{OWNER}`: {rule}. Received: {found}. {cure}")
        column = column.astype(np.float32)
        checks.every_row(OWNER, rule, column, (column >= 0) & (column <= 1), cure)
        return column

    def encode_in_graph(self, y: Any) -> Any:
        """Relevances as float32 `(batch, 1)`."""
        return tf.reshape(tf.cast(y, tf.float32), [-1, 1])

    def class_weight(self, class_weight: Mapping[Any, float]) -> Mapping[Any, float]:
        """As Keras takes them: the classes are 0 and 1."""
        return class_weight

    def decode(self, logits: Any) -> dict[str, tf.Tensor]:
        """`score`: the activation of the logit."""
        return {"score": self.scores(logits[:, 0])}

    def scores(self, logits: Any) -> Any:
        """The scores of logits of any shape, as a TensorFlow tensor."""
        return _activate(self.activation, logits)
