"""`RelativePositionBias`: a trained number for each head and distance, added to the attention scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._summed_gradient import with_summed_gradient
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.layers.positions import Positions


@register
class RelativePositionBias(Positions):
    """T5's positions: each head adds a trained number to its scores, by the distance from query to key.

    Distances share numbers in buckets: half of them for keys before the query, half for keys after it. In each half,
    the first half of the buckets are single distances, the others grow in size up to `max_distance`, and all longer
    distances share the last. Nothing is added to the embeddings. The numbers are added to scaled scores; T5 itself does
    not scale, which its initial weights make up for.

    Args:
        num_buckets: number of buckets; a multiple of 4.
        max_distance: the distance from which on all share one bucket; above `num_buckets / 4`.
        initializer_range: standard deviation of the initial numbers.
        **kwargs: `name`, `dtype`, `trainable`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> part = RelativePositionBias(num_buckets=8, max_distance=20)
        >>> part.buckets([-30, -3, -1, 0, 1, 3, 30]).tolist()
        [3, 2, 1, 0, 5, 6, 7]

    References:
        Raffel et al. 2019, https://arxiv.org/abs/1910.10683, section 2.1; `_relative_position_bucket` in
        google-research/text-to-text-transfer-transformer's models.
    """

    def __init__(
        self, *, num_buckets: int = 32, max_distance: int = 128, initializer_range: float = 0.02, **kwargs: Any
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.num_buckets = checks.positive_integer(owner, "num_buckets", num_buckets)
        if num_buckets % 4:
            raise ValueError(checks.message(owner, "num_buckets", "be a multiple of 4", num_buckets))
        smallest = num_buckets // 4 + 1
        self.max_distance = checks.integer(owner, "max_distance", max_distance, smallest=smallest)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)

    def build(self, input_shape: Any) -> None:
        """Creates the numbers, one for each bucket and head."""
        self.bucket_bias = self.add_weight(
            name="bucket_bias",
            shape=(self.num_buckets, input_shape[1]),
            initializer=truncated_normal(self.initializer_range),
        )

    def buckets(self, distances: Any) -> np.ndarray:
        """The bucket of each distance, int32; a distance is the key's position minus the query's."""
        distances = np.asarray(distances)
        half = self.num_buckets // 2
        num_single = half // 2
        sizes = np.abs(distances)
        ratio = np.maximum(sizes, num_single).astype("float32") / np.float32(num_single)
        # In float32, as in T5's own code: another rounding would put some distances into the next bucket.
        scale = np.float32(np.log(self.max_distance / num_single))
        grown = num_single + (np.log(ratio) / scale * np.float32(half - num_single)).astype("int32")
        found = np.where(sizes < num_single, sizes, np.minimum(grown, half - 1))
        return (found + half * (distances > 0)).astype("int32")

    def bias(self, num_queries: Any, num_keys: Any) -> Any:
        """The numbers of all distances, `[N, Q, S]`."""
        longest = self.max_distance
        buckets = self.buckets(np.arange(-longest, longest + 1))
        by_distance = ops.take(with_summed_gradient(self.bucket_bias), buckets, axis=0)  # [2 longest + 1, N]
        distances = ops.arange(num_keys)[None] - ops.arange(num_queries)[:, None]  # [Q, S]
        chosen = ops.take(with_summed_gradient(by_distance), ops.clip(distances, -longest, longest) + longest, axis=0)
        return ops.transpose(chosen, (2, 0, 1))
