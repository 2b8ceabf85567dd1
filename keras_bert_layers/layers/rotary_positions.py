"""`RotaryPositions`: rotary position embedding (RoPE)."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers.positions import Positions


@register
class RotaryPositions(Positions):
    """Rotary positions (RoPE): queries and keys are rotated by their position, so that scores see the distance.

    The columns 2i and 2i + 1 of each head are a point in the plane, which is rotated by the angle
    `p * base^(-2i / head_dim)` for position p. Nothing is added to the embeddings, and there are no weights.

    Args:
        base: how slowly the last columns rotate.
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
        Su et al. 2021, RoFormer, https://arxiv.org/abs/2104.09864, section 3.2.2.
    """

    def __init__(self, *, base: float = 10_000.0, max_sequence_length: int = 512, **kwargs: Any):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.base = checks.positive_number(owner, "base", base)
        self.max_sequence_length = checks.positive_integer(owner, "max_sequence_length", max_sequence_length)

    def build(self, input_shape: Any) -> None:
        """Refuses heads without pairs of columns."""
        if input_shape[-1] % 2:
            rule = "be even, as pairs of columns are rotated"
            raise ValueError(checks.message(type(self).__name__, "head_dim", rule, input_shape[-1]))

    def rotated(self, heads: Any) -> Any:
        """`[B, N, S, D]`, rotated by position."""
        *axes, length, width = ops.shape(heads)
        cosines, sines = (ops.cast(table, heads.dtype) for table in self._tables(length, width))  # [S, D / 2]
        pairs = ops.reshape(heads, (*axes, length, width // 2, 2))
        first, second = pairs[..., 0], pairs[..., 1]  # [B, N, S, D / 2]
        turned = ops.stack([first * cosines - second * sines, second * cosines + first * sines], axis=-1)
        return ops.reshape(turned, (*axes, length, width))

    def _tables(self, length: Any, width: int) -> list[Any]:
        """Cosines and sines of the first positions, float32 `[S, D / 2]` each."""
        longest = self.max_sequence_length
        if isinstance(length, int) and length > longest:
            rule = f"have at most `max_sequence_length` ({longest}) positions"
            raise ValueError(checks.message(type(self).__name__, "heads", rule, checks.Shown(f"<{length} positions>")))
        # In float64: in float32, an angle of 500 would be off by 3e-5, and distances would depend on where they are.
        angles = np.arange(longest)[:, None] * self.base ** (-2 * np.arange(width // 2) / width)
        tables = [np.cos(angles).astype("float32"), np.sin(angles).astype("float32")]
        # Where a dynamic length is too long, this raises.
        return [ops.slice(table, (0, 0), (length, width // 2)) for table in tables]
