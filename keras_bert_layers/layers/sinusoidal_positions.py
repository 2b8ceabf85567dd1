"""`SinusoidalPositions`: the fixed position embedding of the first Transformer."""

from __future__ import annotations

import numpy as np

from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers.positions import Positions


@register
class SinusoidalPositions(Positions):
    """Positions as sines and cosines of several wavelengths, added to the token embeddings; no weights.

    The vector of position p has `sin(p / 10000^(2i / width))` in column 2i and the cosine of the same in column 2i + 1.

    Args:
        **kwargs: `name`, `dtype`, `trainable`.

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
