"""`RelativeVectors`: trained vectors of relative positions, as in DeBERTa, which all blocks share."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Tensor
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.layers.layer_norm import LayerNorm
from keras_bert_layers.layers.positions import Positions


@register
class RelativeVectors(Positions):
    """DeBERTa's positions: a trained vector for each distance, which `DisentangledSelfAttention` reads in every block.

    A distance is the query's position minus the key's. With `num_buckets`, distances of up to half of them have a
    vector each, and longer ones share vectors in buckets that grow up to `max_distance`.

    Args:
        num_buckets: how many vectors there are for either direction; None for `max_distance`, without sharing.
        max_distance: the distance from which on all share one vector; above `num_buckets // 2 + 1`.
        normalize: whether the vectors pass through a LayerNorm.
        layer_norm_epsilon: added to the variance in that LayerNorm.
        keeps_position_embedding: whether the encoder has BERT's trained position embedding too.
        initializer_range: standard deviation of the initial vectors.
        max_sequence_length: length of the longest sequence in an ONNX file; a `BertBackbone` gives its part the
            config's.
        **kwargs: `name`, `dtype`, `trainable`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> part = RelativeVectors(num_buckets=4, max_distance=9)
        >>> part.rows([-20, -3, -2, -1, 0, 1, 2, 3, 20]).tolist()
        [0, 1, 2, 3, 4, 5, 6, 7, 7]

    References:
        He et al. 2020, https://arxiv.org/abs/2006.03654, section 3.1; `make_log_bucket_position` in transformers,
        models/deberta_v2/modeling_deberta_v2.py.
    """

    def __init__(
        self,
        *,
        num_buckets: int | None = None,
        max_distance: int = 512,
        normalize: bool = False,
        layer_norm_epsilon: float = 1e-7,
        keeps_position_embedding: bool = False,
        initializer_range: float = 0.02,
        max_sequence_length: int = 512,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        if num_buckets is not None:
            checks.integer(owner, "num_buckets", num_buckets, smallest=2)
        smallest = 1 if num_buckets is None else num_buckets // 2 + 2
        self.num_buckets = num_buckets
        self.max_distance = checks.integer(owner, "max_distance", max_distance, smallest=smallest)
        self.normalize = checks.boolean(owner, "normalize", normalize)
        self.layer_norm_epsilon = checks.positive_number(owner, "layer_norm_epsilon", layer_norm_epsilon)
        self.keeps_position_embedding = checks.boolean(owner, "keeps_position_embedding", keeps_position_embedding)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)
        self.max_sequence_length = checks.positive_integer(owner, "max_sequence_length", max_sequence_length)

    @property
    def span(self) -> int:
        """The number of vectors of either direction."""
        return self.num_buckets or self.max_distance

    def build(self, input_shape: Any) -> None:
        """Creates the vectors, `[2 * span, H]`, and LayerNorm."""
        _, num_heads, _, head_dim = input_shape
        self.vectors = self.add_weight(
            name="vectors",
            shape=(2 * self.span, num_heads * head_dim),
            initializer=truncated_normal(self.initializer_range),
        )
        self.layer_norm = None
        if self.normalize:
            self.layer_norm = LayerNorm(epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name="layer_norm")
            self.layer_norm.build((None, num_heads * head_dim))

    def rows(self, distances: Tensor) -> np.ndarray:
        """The row of the vector of each distance, int32."""
        distances = np.asarray(distances)
        if self.num_buckets is not None:
            middle = self.num_buckets // 2
            sizes = np.abs(distances)
            # In float32 and in this order, as transformers: another rounding would give other rows.
            ratio = np.maximum(sizes, middle).astype("float32") / np.float32(middle)
            scale = np.log(np.float32((self.max_distance - 1) / middle))
            grown = np.ceil(np.log(ratio) / scale * np.float32(middle - 1)) + middle
            distances = np.where(sizes <= middle, distances, np.sign(distances) * grown)
        return np.clip(distances + self.span, 0, 2 * self.span - 1).astype("int32")

    def between(self, num_queries: Any, num_keys: Any) -> tuple[Any, Any]:
        """The vectors that so many queries and keys need, and where those of their distances are.

        Returns:
            Float `[R, H]`; and int32 `[S + Q + 1]`, the indices in it for the distances -S, ..., Q.
        """
        longest = self.max_distance
        rows = self.rows(np.arange(-longest, longest + 1))
        is_known = isinstance(num_queries, int) and isinstance(num_keys, int)
        array: Any = np if is_known else ops
        distances = array.clip(array.arange(-num_keys, num_queries + 1), -longest, longest)
        rows = array.take(rows, distances + longest)
        vectors = ops.convert_to_tensor(self.vectors)[rows[0] : rows[-1] + 1]
        if self.layer_norm is not None:
            vectors = self.layer_norm(vectors)
        return vectors, rows - rows[0]
