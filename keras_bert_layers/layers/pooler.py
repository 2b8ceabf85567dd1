"""`Pooler`: BERT's vector for a whole sequence."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._dense import DenseLayer, dense
from keras_bert_layers.layers.activations import activation_function


@register
class Pooler(DenseLayer):
    """BERT's pooler: a dense layer with tanh on the first token, which gives one vector for a sequence.

    `tanh(x[0] W + b)`

    With another activation it is the first layer of the classification heads of DistilBERT ("relu") and of ELECTRA
    ("gelu_erf").

    Args:
        activation: activation of the layer, one of `config.ACTIVATIONS`.
        **kwargs: `initializer_range`, the standard deviation of the initial weights; `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(batch, sequence, hidden_dim)`; or `(batch, hidden_dim)`, of the first tokens only.

    Returns:
        Float `(batch, hidden_dim)`.

    Raises:
        ValueError: if `activation` is unknown, `initializer_range` is not above 0, or `hidden` has neither 2 nor 3
            axes.

    Examples:
        >>> import keras
        >>> tuple(Pooler()(keras.ops.ones((2, 5, 8))).shape)
        (2, 8)

    References:
        `BertModel` in google-research/bert, modeling.py, scope "pooler".
    """

    def __init__(self, *, activation: str = "tanh", **kwargs: Any):
        super().__init__(**kwargs)
        self.activation = activation
        self.activate = activation_function(type(self).__name__, activation)

    def build(self, input_shape: Any) -> None:
        """Creates the dense layer, as wide as the input."""
        if len(input_shape) not in (2, 3):
            rule = "be (batch, sequence, hidden_dim) or (batch, hidden_dim)"
            raise ValueError(checks.message(type(self).__name__, "hidden.shape", rule, tuple(input_shape)))
        self.dense = dense(input_shape[-1], self.initializer_range, activation=self.activate, dtype=self.dtype_policy)
        self.dense.build((input_shape[0], input_shape[-1]))

    def call(self, hidden: Any) -> Any:
        """Pools; see the class."""
        return self.dense(hidden if len(hidden.shape) == 2 else hidden[:, 0, :])

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the input, without the axis of the sequence."""
        return (input_shape[0], input_shape[-1])

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "activation": self.activation}
