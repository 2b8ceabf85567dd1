"""Positions of tokens, in place of a trained position embedding: rotary (RoPE), relative (T5) and sinusoidal."""

from __future__ import annotations

from typing import Any, Unpack

import keras
import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Tensor
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.layers.summed_gradient import with_summed_gradient


class Positions(keras.layers.Layer):
    """The base of positions: how an encoder knows the order of its tokens, in place of a trained position embedding.

    A subclass overrides what it needs: `embedding_table` adds to the embeddings, `rotated` and `bias` act in every
    attention. One part serves all blocks of an encoder, with one set of weights. Both actions in attention must depend
    on the distance between two tokens only, so that rows of several texts give what each text gives alone.

    Axes: B batch, S sequence, N heads, D head, P positions.

    Attributes:
        keeps_position_embedding: whether the encoder has BERT's trained position embedding too.

    Examples:
        >>> from keras_bert_layers.layers import SelfAttention
        >>> class Nearness(Positions):
        ...     def bias(self, num_queries, num_keys):
        ...         distances = keras.ops.arange(num_queries)[:, None] - keras.ops.arange(num_keys)[None]
        ...         return -keras.ops.cast(keras.ops.abs(distances), "float32")[None]
        >>> tuple(SelfAttention(2, positions=Nearness())(keras.ops.ones((3, 5, 8))).shape)
        (3, 5, 8)
    """

    keeps_position_embedding = False

    def embedding_table(self, num_positions: int, width: int) -> np.ndarray | None:
        """The table to add to the token embeddings, float32 `[P, width]`; None for nothing."""
        return None

    def rotated(self, heads: Tensor) -> Any:
        """Queries or keys `[B, N, S, D]` of the positions 0, 1, 2, ..., as the products of both see them."""
        return heads

    def bias(self, num_queries: Tensor, num_keys: Tensor) -> Any:
        """The bias to add to the scaled scores, `[N or 1, queries, keys]`; None for nothing."""
        return None

    def build(self, input_shape: Any) -> None:
        """Creates the weights, if there are any; `input_shape` is that of the queries, `(B, N, S, D)`."""

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        cls = type(self)
        own = constructor_arguments(cls, self) if "__init__" in vars(cls) else {}
        return {**super().get_config(), **own}


@register
class RelativePositionBias(Positions):
    """T5's positions: each head adds a trained number to its scores, by the distance from query to key.

    Distances share numbers in buckets: half of them for keys before the query, half for keys after it. In each half,
    the first half of the buckets are single distances, the others grow in size up to `max_distance`, and all longer
    distances share the last. The numbers are added to scaled scores; T5 itself does not scale, for which its initial
    weights make up.

    Args:
        num_buckets: number of buckets; a multiple of 4.
        max_distance: the distance from which on all share one bucket; above `num_buckets / 4`.
        keeps_position_embedding: whether the encoder has BERT's trained position embedding too, as MPNet; if not,
            nothing is added to the token embeddings.
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
        google-research/text-to-text-transfer-transformer's models. MPNet: Song et al. 2020,
        https://arxiv.org/abs/2004.09297.
    """

    def __init__(
        self,
        *,
        num_buckets: int = 32,
        max_distance: int = 128,
        keeps_position_embedding: bool = False,
        initializer_range: float = 0.02,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.num_buckets = checks.positive_integer(owner, "num_buckets", num_buckets)
        if num_buckets % 4:
            raise ValueError(checks.message(owner, "num_buckets", "be a multiple of 4", num_buckets))
        smallest = num_buckets // 4 + 1
        self.max_distance = checks.integer(owner, "max_distance", max_distance, smallest=smallest)
        self.keeps_position_embedding = checks.boolean(owner, "keeps_position_embedding", keeps_position_embedding)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)

    def build(self, input_shape: Any) -> None:
        """Creates the numbers, one for each bucket and head."""
        self.bucket_bias = self.add_weight(
            name="bucket_bias",
            shape=(self.num_buckets, input_shape[1]),
            initializer=truncated_normal(self.initializer_range),
        )

    def buckets(self, distances: Tensor) -> np.ndarray:
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

    def bias(self, num_queries: Tensor, num_keys: Tensor) -> Any:
        """The numbers of all distances, `[N, Q, S]`."""
        longest = self.max_distance
        buckets = self.buckets(np.arange(-longest, longest + 1))
        by_distance = ops.take(with_summed_gradient(self.bucket_bias), buckets, axis=0)  # [2 longest + 1, N]
        distances = ops.arange(num_keys)[None] - ops.arange(num_queries)[:, None]  # [Q, S]
        chosen = ops.take(with_summed_gradient(by_distance), ops.clip(distances, -longest, longest) + longest, axis=0)
        return ops.transpose(chosen, (2, 0, 1))


@register
class RotaryPositions(Positions):
    """Rotary positions (RoPE): queries and keys are rotated by their position, so that scores see the distance.

    The columns 2i and 2i + 1 of each head are a point in the plane, which is rotated by the angle
    `p * base^(-2i / head_dim)` for position p. Nothing is added to the embeddings, and there are no weights. With
    `halves`, the columns i and i + head_dim / 2 are such a point, as in GPT-NeoX and ModernBERT.

    Args:
        base: how slowly the last columns rotate.
        halves: whether a column of the first half of a head is paired with one of the second half.
        interpolation: what positions are divided by, so that longer texts have the angles of shorter ones.
        max_sequence_length: length of the longest sequence, in tokens. A `BertBackbone` gives its part the config's.
        **kwargs: `name`, `dtype`, `trainable`.

    Raises:
        ValueError: if an argument is out of range; if heads of an odd width are to be rotated, or a longer sequence.

    Examples:
        >>> import keras
        >>> heads = keras.ops.convert_to_tensor([[[[1.0, 0.0], [1.0, 0.0]]]])  # one head, two positions
        >>> keras.ops.convert_to_numpy(RotaryPositions().rotated(heads)).round(2)[0, 0].tolist()
        [[1.0, 0.0], [0.5400000214576721, 0.8399999737739563]]

    References:
        Su et al. 2021, RoFormer, https://arxiv.org/abs/2104.09864, section 3.2.2. Interpolation: Chen et al. 2023,
        https://arxiv.org/abs/2306.15595.
    """

    def __init__(
        self,
        *,
        base: float = 10_000.0,
        halves: bool = False,
        interpolation: float = 1.0,
        max_sequence_length: int = 512,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.base = checks.positive_number(owner, "base", base)
        self.halves = checks.boolean(owner, "halves", halves)
        self.interpolation = checks.positive_number(owner, "interpolation", interpolation)
        self.max_sequence_length = checks.positive_integer(owner, "max_sequence_length", max_sequence_length)

    def build(self, input_shape: Any) -> None:
        """Refuses heads without pairs of columns."""
        if input_shape[-1] % 2:
            rule = "be even, as pairs of columns are rotated"
            raise ValueError(checks.message(type(self).__name__, "head_dim", rule, input_shape[-1]))

    def rotated(self, heads: Tensor) -> Any:
        """`[B, N, S, D]`, rotated by position."""
        *axes, length, width = ops.shape(heads)
        cosines, sines = (ops.cast(table, heads.dtype) for table in self.tables(length, width))  # [S, D / 2]
        if self.halves:
            first, second = heads[..., : width // 2], heads[..., width // 2 :]  # [B, N, S, D / 2]
            return ops.concatenate([first * cosines - second * sines, second * cosines + first * sines], axis=-1)
        pairs = ops.reshape(heads, (*axes, length, width // 2, 2))
        first, second = pairs[..., 0], pairs[..., 1]  # [B, N, S, D / 2]
        turned = ops.stack([first * cosines - second * sines, second * cosines + first * sines], axis=-1)
        return ops.reshape(turned, (*axes, length, width))

    def tables(self, length: Any, width: int) -> list[Any]:
        """Cosines and sines of the first positions, float32 `[S, D / 2]` each."""
        longest = self.max_sequence_length
        if isinstance(length, int) and length > longest:
            rule = f"have at most `max_sequence_length` ({longest}) positions"
            raise ValueError(checks.message(type(self).__name__, "heads", rule, checks.Shown(f"<{length} positions>")))
        # In float64: in float32, an angle of 500 would be off by 3e-5, and distances would depend on where they are.
        angles = np.arange(longest)[:, None] / self.interpolation * self.base ** (-2 * np.arange(width // 2) / width)
        tables = [np.cos(angles).astype("float32"), np.sin(angles).astype("float32")]
        # Where a dynamic length is too long, this raises.
        return [ops.slice(table, (0, 0), (length, width // 2)) for table in tables]


@register
class SinusoidalPositions(Positions):
    """Positions as sines and cosines of several wavelengths, added to the token embeddings; no weights.

    The vector of position p has `sin(p / 10000^(2i / width))` in column 2i and the cosine of the same in column 2i + 1.

    Examples:
        >>> SinusoidalPositions().embedding_table(2, 4).round(2).tolist()
        [[0.0, 1.0, 0.0, 1.0], [0.8399999737739563, 0.5400000214576721, 0.009999999776482582, 1.0]]

    References:
        Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.5.
    """

    def embedding_table(self, num_positions: int, width: int) -> np.ndarray:
        """Sines and cosines, float32 `[P, width]`."""
        columns = np.arange(width)
        angles = np.arange(num_positions)[:, None] / 10_000 ** (columns // 2 * 2 / width)  # [P, width]
        return np.where(columns % 2, np.cos(angles), np.sin(angles)).astype("float32")
