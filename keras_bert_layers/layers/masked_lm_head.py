"""`MaskedLMHead`: from hidden states at masked positions to a logit for every token of the vocabulary."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._layer_norm import LayerNorm
from keras_bert_layers.layers._packing import at_places, of_each_token
from keras_bert_layers.layers.activations import activation_function
from keras_bert_layers.layers.bert_embedding import BertEmbedding
from keras_bert_layers.layers.initializers import truncated_normal


class _Reference:
    """Holds a layer or a model of which Keras must not make a sub-layer."""

    def __init__(self, encoder: Any):
        self.encoder = encoder


@register
class MaskedLMHead(keras.layers.Layer):
    """How likely each token of the vocabulary is at each masked position.

    `LayerNorm(activation(x W + b)) E^T + c`, where E is the encoder's token embedding: the same matrix, not a copy. The
    masked positions are picked first, so that the product with the vocabulary, the largest of the whole model, is made
    for these alone.

    E stays a weight of the encoder, and training changes it from both sides. It is none of the head's own weights, so
    that it is counted and saved once, and freezing the head leaves it alone.

    Args:
        encoder: a `BertBackbone`, or another model whose layer "embedding" is a `BertEmbedding`; or a `BertEmbedding`.
            A functional model of both, saved and loaded, is tied again. `keras.models.clone_model` copies layer by
            layer, so that a copied head has an encoder of its own.
        activation: the config's, one of `config.ACTIVATIONS`.
        layer_norm_epsilon: what LayerNorm adds to the variance.
        initializer_range: standard deviation of a fresh W; b and c are fresh at zero.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(batch, sequence, hidden_dim)`; without `mask_positions`, float `(..., hidden_dim)`.
        mask_positions: int `(batch, masks)`, places in the sequence, at least 0 and less than its length (others give
            NaN); None for logits at all positions.

    Returns:
        Logits, float32 under every dtype policy: `(batch, masks, vocabulary_size)`; without `mask_positions`,
        `(..., vocabulary_size)`.

    Raises:
        TypeError: if `encoder` is not a `BertEmbedding` and has none.
        ValueError: if another argument is out of its range.

    Examples:
        >>> from keras_bert_layers.layers import BertEmbedding
        >>> embedding = BertEmbedding(99, 8)
        >>> head = MaskedLMHead(embedding)
        >>> hidden = embedding(keras.ops.ones((2, 5), dtype="int32"))
        >>> tuple(head(hidden, keras.ops.convert_to_tensor([[1, 3], [0, 0]])).shape)
        (2, 2, 99)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3.1; `get_masked_lm_output` in
        google-research/bert, run_pretraining.py. The tied matrix: Press and Wolf 2016,
        https://arxiv.org/abs/1608.05859.
    """

    def __init__(
        self,
        encoder: Any,
        *,
        activation: str = "gelu_erf",
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self._reference = _Reference(encoder)
        if not isinstance(self.token_embedding, BertEmbedding):
            rule = "be a BertEmbedding, or a model whose layer `embedding` is one"
            raise TypeError(checks.message(owner, "encoder", rule, encoder, "Give a `BertBackbone`."))
        self.activation = activation
        self.activate = activation_function(owner, activation)
        self.layer_norm_epsilon = checks.positive_number(owner, "layer_norm_epsilon", layer_norm_epsilon)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)

    @property
    def token_embedding(self) -> Any:
        """The layer whose token matrix turns vectors into logits."""
        encoder = self._reference.encoder
        if not isinstance(encoder, keras.Model):
            return encoder
        return next((layer for layer in encoder.layers if layer.name == "embedding"), None)

    def build(self, input_shape: Any) -> None:
        """Makes the dense layer, the norm and the bias; and the embedding's weights, if it has none yet."""
        embedding = self.token_embedding
        width = embedding.embedding_dim or embedding.hidden_dim
        self.dense = keras.layers.Dense(
            width,
            kernel_initializer=truncated_normal(self.initializer_range),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.dense.build((None, input_shape[-1]))
        self.layer_norm = LayerNorm(epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name="layer_norm")
        self.layer_norm.build((None, width))
        self.bias = self.add_weight(
            name="bias", shape=(embedding.vocabulary_size,), initializer="zeros", dtype="float32", autocast=False
        )
        if not embedding.built:
            embedding.build((None, None))

    def call(self, hidden: Any, mask_positions: Any = None) -> Any:
        """Gives logits; see the class."""
        if mask_positions is not None:
            hidden = _picked(hidden, mask_positions)  # [B, M, H]
        return of_each_token(self._logits, hidden)

    def _logits(self, hidden: Any) -> Any:
        axes = ops.shape(hidden)[:-1]
        # One large product of two matrices; the gradient of a product of three axes and two takes twice as long.
        rows = ops.reshape(hidden, (-1, hidden.shape[-1]))
        rows = self.layer_norm(self.activate(self.dense(rows)))
        matrix = ops.convert_to_tensor(self.token_embedding.token_embedding)  # [V, E]
        logits = ops.matmul(ops.cast(rows, matrix.dtype), ops.transpose(matrix))
        return ops.reshape(ops.cast(logits, "float32") + self.bias, (*axes, matrix.shape[0]))  # [B, M, V]

    def compute_output_spec(self, hidden: Any, mask_positions: Any = None) -> Any:
        """Shape and dtype of the logits."""
        shape = hidden.shape[:-1] if mask_positions is None else mask_positions.shape
        return keras.KerasTensor((*shape, self.token_embedding.vocabulary_size), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument; a saved model notes that its encoder and the head's are the same."""
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self._reference.encoder),
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> MaskedLMHead:
        """The head that `get_config` describes."""
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        head = cls(**{**config, "encoder": encoder})
        if "shared_object_id" not in config["encoder"]:  # Keras's mark of what a saved model holds twice
            head.own_encoder = encoder  # no model around it has these weights, so they are the head's
        return head


def _picked(hidden: Any, positions: Any) -> Any:
    """The vectors at some places of each row: `(batch, masks, hidden_dim)` of `(batch, sequence, hidden_dim)`."""
    num_rows, length = ops.shape(hidden)[:2]
    is_outside = (positions < 0) | (positions >= length)
    places = ops.where(is_outside, 0, positions) + length * ops.arange(num_rows, dtype="int32")[:, None]
    return ops.where(is_outside[..., None], float("nan"), at_places(hidden, places))
