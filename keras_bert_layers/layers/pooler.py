"""`Pooler`, one vector per sequence, `HeadTransform`, and `NextSentenceHead`, the next-sentence prediction."""

from typing import Any, Unpack

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Shape, Tensor
from keras_bert_layers.layers.dense import DenseLayer, activation_function, dense
from keras_bert_layers.layers.layer_norm import LayerNorm
from keras_bert_layers.layers.padding_free import on_tokens


@register
class Pooler(DenseLayer):
    """BERT's pooler: a dense layer with tanh on the first token, which gives one vector per sequence.

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
        >>> tuple(Pooler()(keras.ops.ones((2, 5, 8))).shape)
        (2, 8)

    References:
        `BertModel` in google-research/bert, modeling.py, scope "pooler".
    """

    def __init__(self, *, activation: str = "tanh", **kwargs: Unpack[LayerOptions]):
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

    def call(self, hidden: Tensor) -> Any:
        """Pools; see the class."""
        return self.dense(hidden if len(hidden.shape) == 2 else hidden[:, 0, :])

    def compute_output_shape(self, input_shape: Shape) -> Any:
        """The shape of the input, without the axis of the sequence."""
        return (input_shape[0], input_shape[-1])

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "activation": self.activation}


@register
class HeadTransform(DenseLayer):
    """The layer before the last one of ModernBERT's heads: a dense layer, an activation and a LayerNorm.

    `LayerNorm(activation(x W + b))`, of each vector. `EncoderParts(normalizes_heads=True)` puts it in the place of the
    pooler, and before the heads of token classification and question answering.

    Args:
        activation: activation of the layer, one of `config.ACTIVATIONS`.
        use_bias: whether the dense layer and LayerNorm have a bias.
        layer_norm_epsilon: added to the variance in LayerNorm.
        **kwargs: `initializer_range`, the standard deviation of the initial weights; `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(..., hidden_dim)`.

    Returns:
        Float, of the shape of `hidden`.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> tuple(HeadTransform(use_bias=False)(keras.ops.ones((2, 5, 8))).shape)
        (2, 5, 8)

    References:
        Warner et al. 2024, https://arxiv.org/abs/2412.13663; `ModernBertPredictionHead` in transformers.
    """

    def __init__(
        self,
        *,
        activation: str = "gelu_erf",
        use_bias: bool = True,
        layer_norm_epsilon: float = 1e-12,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.activation = activation
        self.activate = activation_function(owner, activation)
        self.use_bias = checks.boolean(owner, "use_bias", use_bias)
        self.layer_norm_epsilon = checks.positive_number(owner, "layer_norm_epsilon", layer_norm_epsilon)

    def build(self, input_shape: Any) -> None:
        """Creates the dense layer, as wide as the input, and LayerNorm."""
        options = {"activation": self.activate, "use_bias": self.use_bias, "dtype": self.dtype_policy}
        self.dense = dense(input_shape[-1], self.initializer_range, **options)
        self.dense.build(input_shape)
        self.layer_norm = LayerNorm(
            epsilon=self.layer_norm_epsilon, center=self.use_bias, dtype=self.dtype_policy, name="layer_norm"
        )
        self.layer_norm.build(input_shape)

    def call(self, hidden: Tensor) -> Any:
        """Transforms each vector; see the class."""
        return on_tokens(lambda tokens: self.layer_norm(self.dense(tokens)), hidden)

    def compute_output_spec(self, hidden: Tensor) -> Any:
        """Shape and dtype of the output: those of the input."""
        return keras.KerasTensor(hidden.shape, dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **checks.constructor_arguments(HeadTransform, self)}


@register
class NextSentenceHead(DenseLayer):
    """The next-sentence prediction head: two logits per pair of texts, 0 = the second follows, 1 = it does not.

    `x W + b` on the pooled output, computed in float32 under every dtype policy, for an exact loss.

    Args:
        initializer_range: standard deviation of the initial weights.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        pooled: float `(..., hidden_dim)`.

    Returns:
        Logits, float32 `(..., 2)`.

    Raises:
        ValueError: if `initializer_range` is not above 0.

    Examples:
        >>> tuple(NextSentenceHead()(keras.ops.ones((3, 8))).shape)
        (3, 2)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3.1; `get_next_sentence_output` in
        google-research/bert, run_pretraining.py, which defines 0 and 1.
    """

    def build(self, input_shape: Any) -> None:
        """Creates the dense layer."""
        self.dense = dense(2, self.initializer_range, dtype="float32")
        self.dense.build(input_shape)

    def call(self, pooled: Tensor) -> Any:
        """Computes logits; see the class."""
        return self.dense(pooled)

    def compute_output_spec(self, pooled: Tensor) -> Any:
        """Shape and dtype of the logits."""
        return keras.KerasTensor((*pooled.shape[:-1], 2), dtype="float32")
