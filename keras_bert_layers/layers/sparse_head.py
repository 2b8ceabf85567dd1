"""`SparseHead`: a weight for each token of the vocabulary, of the logits of a masked language model (SPLADE)."""

from typing import Any, Unpack

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Shape, Tensor
from keras_bert_layers.layers.masked_lm_head import MaskedLMHead
from keras_bert_layers.layers.padding_free import known_tokens
from keras_bert_layers.layers.token_weights import TokenWeights

POOLINGS, WEIGHTINGS, QUERY_WEIGHTS = ("max", "sum"), ("relu", "log1p_relu"), ("trained", "frozen")
# How many tokens of the vocabulary are computed at a time: their logits are pooled while they are in the cache.
_BLOCK = 4096


@register
class SparseHead(MaskedLMHead):
    """Weights of the whole vocabulary for each text: logits of the masked language model, pooled over its tokens.

    The weight of a token of the vocabulary is `log(1 + relu(logit))`, of the largest logit among the real tokens of the
    text. The logarithm comes last, as it changes no order, and in TensorFlow's graphs padding is skipped.

    Args:
        encoder: as for `MaskedLMHead`.
        pooling: `"max"`, or `"sum"` for the sum of the weights of all real tokens.
        weighting: `"relu"`, or `"log1p_relu"` for `log(1 + log(1 + relu(logit)))`.
        query_weights: `"trained"` or `"frozen"` for a layer `queries`, the `TokenWeights` of texts that no encoder
            reads; None for none.
        **kwargs: the other arguments of `MaskedLMHead`.

    Call arguments:
        hidden: float `(batch, sequence, hidden_dim)`.
        padding_mask: int or bool `(batch, sequence)`, 1 = real token.

    Returns:
        Float32 `(batch, vocabulary_size)`, at least 0; zeros for a row without real tokens.

    Raises:
        ValueError: an argument out of range.

    Examples:
        >>> from keras_bert_layers.layers import BertEmbedding
        >>> embedding = BertEmbedding(99, 8)
        >>> hidden = embedding(keras.ops.ones((2, 5), dtype="int32"))
        >>> tuple(SparseHead(embedding)(hidden, padding_mask=keras.ops.ones((2, 5))).shape)
        (2, 99)

    References:
        Formal et al. 2021, SPLADE v2, arXiv:2109.10086, section 2; `SpladePooling` of sentence-transformers. For
        "log1p_relu": Shen et al. 2025, arXiv:2504.14839.
    """

    def __init__(
        self,
        encoder: keras.layers.Layer,
        *,
        pooling: str = "max",
        weighting: str = "relu",
        query_weights: str | None = None,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(encoder, **kwargs)
        self.pooling = checks.one_of("SparseHead", "pooling", pooling, POOLINGS)
        self.weighting = checks.one_of("SparseHead", "weighting", weighting, WEIGHTINGS)
        checks.one_of("SparseHead", "query_weights", query_weights, (None, *QUERY_WEIGHTS))
        self.query_weights = query_weights
        size, trainable = self.token_embedding.vocabulary_size, query_weights == "trained"
        self.queries = None if query_weights is None else TokenWeights(size, trainable=trainable, name="queries")

    def build(self, hidden_shape: Shape) -> None:
        """Creates the weights."""
        super().build(hidden_shape)
        if self.queries is not None:
            self.queries.build(None)

    def call(self, hidden: Tensor, padding_mask: Tensor) -> Any:  # type: ignore[override]
        """Computes weights; see the class."""
        known = known_tokens(hidden, padding_mask)
        rows, matrix = self.factors(hidden if known is None else known[1])
        is_real, is_max, parts = ops.cast(padding_mask, "bool"), self.pooling == "max", []
        for start in range(0, matrix.shape[0], _BLOCK):
            block = slice(start, start + _BLOCK)
            values = ops.cast(ops.matmul(rows, ops.transpose(matrix[block])), "float32")  # [T, V] or [B * S, V]
            values = values if is_max else self._weights(values + self.bias[block])
            if known is not None:
                pool = tf.math.segment_max if is_max else tf.math.segment_sum
                parts.append(pool(values, known[0].rows()))
            else:
                values = ops.reshape(values, (*ops.shape(padding_mask), values.shape[-1]))
                values = ops.where(is_real[..., None], values, -float("inf") if is_max else 0.0)
                parts.append((ops.max if is_max else ops.sum)(values, axis=1))
        pooled = ops.concatenate(parts, axis=-1)
        pooled = self._weights(pooled + self.bias) if is_max else pooled
        # A row of only padding has a token where padding is skipped.
        return ops.where(ops.any(is_real, axis=1, keepdims=True), pooled, 0.0)

    def _weights(self, logits: Tensor) -> Any:
        """Weights of logits, whatever their shape."""
        weights = ops.log1p(ops.relu(logits))
        return ops.log1p(weights) if self.weighting == "log1p_relu" else weights

    def compute_output_spec(self, hidden: Tensor, padding_mask: Tensor) -> Any:  # type: ignore[override]
        """Shape and dtype of the weights."""
        return keras.KerasTensor((hidden.shape[0], self.token_embedding.vocabulary_size), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        own = {"pooling": self.pooling, "weighting": self.weighting, "query_weights": self.query_weights}
        return {**super().get_config(), **own}
