"""`AttentionMask`: which keys each query may attend to, and what positions add to the scores."""

from __future__ import annotations

from typing import Any, NamedTuple

from keras import ops

from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.layers.local_blocks import Blocks
from keras_bert_layers.layers.positions import Positions


class AttentionMask(NamedTuple):
    """Which keys each query may attend to, and what positions add to the scores.

    Axes: B batch, S sequence, Q queries (S, or 1), N heads, D head; F blocks of C queries and K keys.

    Args:
        padding_mask: as the attention is called with it, int or bool `[B, S]`, or None.
        packed_rows: whether a token attends to tokens of its own number in `padding_mask` only.
        causal: whether a position attends only to itself and to positions before it.
        window: width in tokens of what a position attends to; None for all.
        positions: the part that may add to the scores, or None.
    """

    padding_mask: Any
    packed_rows: bool
    causal: bool
    window: int | None
    positions: Positions | None

    @property
    def reach(self) -> int:
        """The largest distance that a window allows."""
        return (self.window or 0) // 2

    def of_all(self, query: Tensor, key: Tensor) -> tuple[Any, Any]:
        """For queries `[B, N, Q, D]` and keys `[B, N, S, D]`.

        Returns:
            Bool `[B or 1, 1, Q or 1, S]`, True if query i may attend to key j, or None if all may attend to all; and
            what is added to the scores, `[N, Q, S]`, or None.
        """
        visible = None
        if self.padding_mask is not None:
            batch, length = ops.shape(self.padding_mask)
            # The explicit shape fixes the rank for TensorFlow, even if the caller left it open, so that it fuses the
            # products.
            if self.packed_rows:
                own_text = ops.reshape(self.padding_mask[:, : query.shape[2]], (batch, 1, -1, 1))
                visible = ops.equal(own_text, ops.reshape(self.padding_mask, (batch, 1, 1, length)))  # [B, 1, Q, S]
            else:
                visible = ops.reshape(ops.cast(self.padding_mask, "bool"), (batch, 1, 1, length))  # [B, 1, 1, S]
        if self.causal or self.window is not None:
            near = self._near(ops.shape(query)[2], ops.shape(key)[2])[None, None]  # [1, 1, Q, S]
            visible = near if visible is None else ops.logical_and(visible, near)  # [B, 1, Q, S]
        bias = None if self.positions is None else self.positions.bias(ops.shape(query)[2], ops.shape(key)[2])
        return visible, bias

    def in_blocks(self, blocks: Blocks, query: Tensor) -> tuple[Any, Any]:
        """The same for blocks of queries and their keys, `[B, 1, F, C, K]` and `[N, 1, C, K]`."""
        batch, _, length, _ = ops.shape(query)
        no_padding = self.padding_mask is None
        numbers = ops.ones((batch, length), "int32") if no_padding else ops.cast(self.padding_mask, "int32")
        numbers = ops.reshape(numbers, (batch, 1, length, 1))
        of_keys = ops.swapaxes(blocks.with_margins(numbers), -1, -2)  # [B, 1, F, 1, K]
        visible = ops.equal(blocks.cut(numbers), of_keys) if self.packed_rows else ops.cast(of_keys, "bool")
        num_keys = blocks.size + 2 * blocks.margin
        visible = ops.logical_and(visible, self._near(blocks.size, num_keys, -blocks.margin))
        bias = None if self.positions is None else self.positions.bias(blocks.size + blocks.margin, num_keys)
        return visible, None if bias is None else bias[:, None, blocks.margin :]

    def _near(self, num_queries: Tensor, num_keys: Tensor, first_key: Any = 0) -> Any:
        """Bool `[queries, keys]`, True where position and window allow it; `first_key` is the first key's position."""
        distances = ops.arange(num_keys)[None, :] + first_key - ops.arange(num_queries)[:, None]
        near = distances <= (0 if self.causal else self.reach)
        return near if self.window is None else ops.logical_and(near, distances >= -self.reach)
