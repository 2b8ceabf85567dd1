"""`ClassificationHead`: logits of classes."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.arguments import constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._dense import dense
from keras_bert_layers.layers._packing import of_each_token


@register
class ClassificationHead(keras.layers.Layer):
    """A classification head: dropout and a dense layer, from a vector to the logits of classes.

    `dropout(x) W + b`, computed in float32 under every dtype policy, for exact probabilities and losses.

    Args:
        num_classes: number of classes.
        dropout: dropout rate of the input, in [0, 1).
        initializer_range: standard deviation of the initial weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(..., hidden_dim)`.

    Returns:
        Logits, float32 `(..., num_classes)`.

    Raises:
        ValueError: if an argument is out of range.

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
        """Creates the dense layer."""
        self.dropout_layer = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = dense(self.num_classes, self.initializer_range, dtype="float32")
        self.dense.build(input_shape)

    def call(self, hidden: Any) -> Any:
        """Computes logits; see the class."""
        return of_each_token(lambda tokens: self.dense(self.dropout_layer(tokens)), hidden)

    def compute_output_spec(self, hidden: Any) -> Any:
        """Shape and dtype of the logits."""
        return keras.KerasTensor((*hidden.shape[:-1], self.num_classes), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **constructor_arguments(ClassificationHead, self)}
