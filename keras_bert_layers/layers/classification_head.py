"""`ClassificationHead`: from a vector to the logits of classes."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._packing import of_each_token
from keras_bert_layers.layers.initializers import truncated_normal


@register
class ClassificationHead(keras.layers.Layer):
    """Dropout and a dense layer: from a vector to the logits of classes.

    `dropout(x) W + b`, computed in float32 under every dtype policy, as probabilities and losses follow.

    Args:
        num_classes: number of classes.
        dropout: rate on the input, in [0, 1).
        initializer_range: standard deviation of fresh weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(..., hidden_dim)`.

    Returns:
        Logits, float32 `(..., num_classes)`.

    Raises:
        ValueError: if an argument is out of its range.

    Examples:
        >>> tuple(ClassificationHead(num_classes=3)(keras.ops.ones((2, 8))).shape)
        (2, 3)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 4.1; `create_model` in google-research/bert,
        run_classifier.py.
    """

    def __init__(self, num_classes: int, *, dropout: float = 0.1, initializer_range: float = 0.02, **kwargs: Any):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.num_classes = checks.positive_integer(owner, "num_classes", num_classes)
        self.dropout = checks.fraction(owner, "dropout", dropout)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)

    def build(self, input_shape: Any) -> None:
        """Makes the dense layer."""
        self.dropout_layer = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(
            self.num_classes,
            kernel_initializer=truncated_normal(self.initializer_range),
            dtype="float32",
            name="dense",
        )
        self.dense.build(input_shape)

    def call(self, hidden: Any) -> Any:
        """Gives logits; see the class."""
        return of_each_token(lambda tokens: self.dense(self.dropout_layer(tokens)), hidden)

    def compute_output_spec(self, hidden: Any) -> Any:
        """Shape and dtype of the logits."""
        return keras.KerasTensor((*hidden.shape[:-1], self.num_classes), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "dropout": self.dropout,
            "initializer_range": self.initializer_range,
        }
