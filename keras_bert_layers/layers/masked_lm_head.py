"""`MaskedLMHead`: logits over the vocabulary at masked positions."""

from __future__ import annotations

from typing import Any, Unpack

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.keras_models import Untracked
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Shape, Tensor
from keras_bert_layers.layers.bert_embedding import BertEmbedding
from keras_bert_layers.layers.dense import activation_function, dense
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.layers.layer_norm import LayerNorm
from keras_bert_layers.layers.padding_free import at_indices, of_each_token
from keras_bert_layers.layers.products import product


@register
class MaskedLMHead(keras.layers.Layer):
    """The head of BERT's masked language model: logits over the vocabulary at each masked position.

    `LayerNorm(activation(x W + b)) E^T + c`, where E is the encoder's token embedding: the same matrix, not a copy. The
    masked positions are selected first, because the product with the vocabulary is the largest of the model.

    E stays a weight of the encoder, and the head's gradients train it too. It is not a weight of the head, so it is
    counted and saved once, and freezing the head does not freeze it. With `tie_weights=False`, E is a matrix of the
    head's own.

    Args:
        encoder: a `BertBackbone`, or another model whose layer "embedding" is a `BertEmbedding`; or a `BertEmbedding`.
            A functional model of both keeps the tie when it is saved and loaded. `keras.models.clone_model` copies
            layer by layer, so a copied head gets an encoder of its own.
        activation: the config's, one of `config.ACTIVATIONS`.
        layer_norm_epsilon: added to the variance in LayerNorm.
        tie_weights: whether E is the encoder's token embedding.
        use_bias: whether there is a b, and a bias in LayerNorm; there is always a c.
        initializer_range: standard deviation of the initial W, and of the head's own E; b and c start at zero.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(batch, sequence, hidden_dim)`; without `mask_positions`, float `(..., hidden_dim)`.
        mask_positions: int `(batch, masks)`, at least 0 and less than the length of the sequence (others give NaN);
            None for logits at all positions.

    Returns:
        Logits, float32 under every dtype policy: `(batch, masks, vocabulary_size)`; without `mask_positions`,
        `(..., vocabulary_size)`.

    Raises:
        TypeError: if `encoder` is not a `BertEmbedding` and has none.
        ValueError: if another argument is out of range.

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
        encoder: keras.layers.Layer,
        *,
        activation: str = "gelu_erf",
        layer_norm_epsilon: float = 1e-12,
        tie_weights: bool = True,
        use_bias: bool = True,
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self._encoder = Untracked(encoder)
        if not isinstance(self.token_embedding, BertEmbedding):
            rule = "be a BertEmbedding, or a model whose layer `embedding` is one"
            raise TypeError(checks.message(owner, "encoder", rule, encoder, "Give a `BertBackbone`."))
        self.activation = activation
        self.activate = activation_function(owner, activation)
        self.layer_norm_epsilon = checks.positive_number(owner, "layer_norm_epsilon", layer_norm_epsilon)
        self.tie_weights = checks.boolean(owner, "tie_weights", tie_weights)
        self.use_bias = checks.boolean(owner, "use_bias", use_bias)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)

    @property
    def token_embedding(self) -> Any:
        """The encoder's embedding layer, whose token matrix the head uses."""
        encoder = self._encoder.value
        if not isinstance(encoder, keras.Model):
            return encoder
        return next((layer for layer in encoder.layers if layer.name == "embedding"), None)

    def build(self, input_shape: Shape) -> None:
        """Creates the dense layer, the norm and the bias, and builds the embedding if it is not built yet."""
        embedding = self.token_embedding
        width = embedding.embedding_dim or embedding.hidden_dim
        self.dense = dense(width, self.initializer_range, use_bias=self.use_bias, dtype=self.dtype_policy)
        self.dense.build((None, input_shape[-1]))
        self.layer_norm = LayerNorm(
            epsilon=self.layer_norm_epsilon, center=self.use_bias, dtype=self.dtype_policy, name="layer_norm"
        )
        self.layer_norm.build((None, width))
        self.bias = self.add_weight(
            name="bias", shape=(embedding.vocabulary_size,), initializer="zeros", dtype="float32", autocast=False
        )
        if not self.tie_weights:
            self.decoder = self.add_weight(
                name="decoder",
                shape=(embedding.vocabulary_size, width),
                initializer=truncated_normal(self.initializer_range),
                autocast=False,  # as the embedding's
            )
        elif not embedding.built:
            embedding.build((None, None))

    def call(self, hidden: Tensor, mask_positions: Tensor | None = None) -> Any:
        """Computes logits; see the class."""
        if mask_positions is not None:
            hidden = _at_positions(hidden, mask_positions)  # [B, M, H]
        return of_each_token(self._logits, hidden)

    def _logits(self, hidden: Tensor) -> Any:
        axes = ops.shape(hidden)[:-1]
        rows, matrix = self.factors(hidden)
        logits = product(rows, ops.transpose(matrix))
        return ops.reshape(ops.cast(logits, "float32") + self.bias, (*axes, matrix.shape[0]))  # [B, M, V]

    def factors(self, hidden: Tensor) -> tuple[Any, Any]:
        """The two factors of the logits without their bias: rows `[N, E]`, for hidden states, and the matrix `[V, E]`.

        Two matrices: the gradient of a product of three axes and two takes twice as long.
        """
        rows = ops.reshape(hidden, (-1, hidden.shape[-1]))
        rows = self.layer_norm(self.activate(self.dense(rows)))
        matrix = ops.convert_to_tensor(self.token_embedding.token_embedding if self.tie_weights else self.decoder)
        return ops.cast(rows, matrix.dtype), matrix

    def compute_output_spec(self, hidden: Tensor, mask_positions: Tensor | None = None) -> Any:
        """Shape and dtype of the logits."""
        shape = hidden.shape[:-1] if mask_positions is None else mask_positions.shape
        return keras.KerasTensor((*shape, self.token_embedding.vocabulary_size), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument; in a saved model, the encoder is shared with the model's own."""
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self._encoder.value),
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "tie_weights": self.tie_weights,
            "use_bias": self.use_bias,
            "initializer_range": self.initializer_range,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> MaskedLMHead:
        """A new head from a `get_config` dictionary."""
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        head = cls(**{**config, "encoder": encoder})
        if "shared_object_id" not in config["encoder"]:  # Keras's mark of an object that a saved model contains twice
            head.own_encoder = encoder  # no other part of a model has these weights, so the head tracks them
        return head


def _at_positions(hidden: Tensor, positions: Any) -> Any:
    """The vectors at some positions of each row: `(batch, masks, hidden_dim)` of `(batch, sequence, hidden_dim)`."""
    num_rows, length = ops.shape(hidden)[:2]
    is_outside = (positions < 0) | (positions >= length)
    indices = ops.where(is_outside, 0, positions) + length * ops.arange(num_rows, dtype="int32")[:, None]
    return ops.where(is_outside[..., None], float("nan"), at_indices(hidden, indices))
