"""The algorithms of attention: `FullScores`, `FusedKernel`, `LocalBlocks`, and `InTurns` for long rows.

`SelfAttention` chooses one for each call. Each has `attend`, from queries, keys and values `[B, N, S, D]` to the
context `[B, Q, N, D]` and the probabilities `[B, N, Q, S]`, or None where these are never in one tensor.

Axes: B batch, S sequence, Q queries (S, or 1), N heads, D head; F blocks of C queries and K keys.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import keras
from keras import ops

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.layers.local_blocks import Blocks, with_zeros

# Where `keras.ops.dot_product_attention` is a fused kernel. On TensorFlow it is the same products as in `FullScores`.
FUSING_BACKENDS = ("jax", "torch")

# `InTurns` computes all at once if there are at most so many scores, and one head of a row that is longer than the
# second number. Larger tensors get new memory from the system for each operation.
_MANY_SCORES, LONG_ROW = 2**22, 512


class Weighted(Protocol):
    """The formula of attention, as `SelfAttention` computes it."""

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor, bias: Tensor) -> tuple[Any, Any]:
        """The context `[..., Q, D]` and the probabilities `[..., Q, S]`; see `FullScores`."""


class Kernel(Protocol):
    """An algorithm of attention."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Any, Any]:
        """The context `[B, Q, N, D]`, and the probabilities `[B, N, Q, S]` or None."""


class FullScores(NamedTuple):
    """Attention with all scores of the batch in one tensor.

    Args:
        weighted: the formula.
        visible: bool `[B or 1, 1, Q or 1, S]`, True if query i may attend to key j; None if all may attend to all.
        bias: what is added to the scores, `[N, Q, S]`, or None.
    """

    weighted: Weighted
    visible: Any
    bias: Any

    @property
    def is_same_for_all_queries(self) -> bool:
        """Whether all queries see the same keys, so that they can be taken in turns."""
        return self.bias is None and (self.visible is None or self.visible.shape[2] == 1)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Any, Any]:
        """The context and the probabilities."""
        context, scores = self.weighted(query, key, value, self.visible, self.bias)
        return _swap_heads_and_sequence(context), scores

    def cut(self, queries: Tensor, shape: tuple[Any, ...], size: Any) -> tuple[Any, Any]:
        """Queries of this shape, `[R, N, S, D]`, in turns `[R * turns, N, size, D]`; and the turns of each row."""
        rows, heads, length, width = shape
        size = size if self.bias is None else length  # which all queries of a head share
        count = (length + size - 1) // size
        queries = with_zeros(queries, 0, count * size - length)
        return ops.reshape(queries, (rows * count, heads, size, width)), count

    def of_turn(self, query: Tensor, key: Tensor, value: Tensor, visible: Any, bias: Any) -> Any:
        """The context `[N, size, D]` of the queries of one turn."""
        return self.weighted(query, key, value, visible, bias)[0]


class LocalBlocks(NamedTuple):
    """Attention in a window: blocks of queries, each with the keys of itself and of its neighbors.

    Args:
        weighted: the formula.
        blocks: the cut of the sequence.
        visible: bool `[B, 1, F, C, K]`, True if a query may attend to a key.
        bias: what is added to the scores, `[N, 1, C, K]`, or None.
    """

    weighted: Weighted
    blocks: Blocks
    visible: Any
    bias: Any

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Any, None]:
        """The context, and None."""
        batch, num_heads, length, width = ops.shape(query)
        context = self.of_turn(self.blocks.cut(query), key, value, self.visible, self.bias)  # [B, N, F, C, D]
        context = ops.reshape(context, (batch, num_heads, -1, width))
        return _swap_heads_and_sequence(context[:, :, :length]), None

    def cut(self, queries: Tensor, shape: tuple[Any, ...], size: Any) -> tuple[Any, int]:
        """Queries `[R, N, S, D]` in blocks, `[R, N, F, C, D]`; a row is one turn."""
        return self.blocks.cut(queries), 1

    def of_turn(self, query: Tensor, key: Tensor, value: Tensor, visible: Any, bias: Any) -> Any:
        """The context `[..., N, F, C, D]` of queries in blocks, of keys and values `[..., N, S, D]`."""
        key, value = self.blocks.with_margins(key), self.blocks.with_margins(value)
        return self.weighted(query, key, value, visible, bias)[0]


class InTurns(NamedTuple):
    """Another algorithm for one row after the other, or for one head of a long row, so that few scores are in memory.

    On TensorFlow, which has no gradient for it that saves memory. Few scores are computed at once.

    Args:
        kernel: the other algorithm.
    """

    kernel: FullScores | LocalBlocks

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Any, None]:
        """The context, and None."""
        batch, num_heads, length, _ = ops.shape(query)
        are_many = _are_many(batch, num_heads, length)
        if isinstance(are_many, bool):
            attend = self._in_turns if are_many else self._at_once
            return attend(query, key, value), None
        turns, at_once = (functools.partial(run, query, key, value) for run in (self._in_turns, self._at_once))
        return ops.cond(are_many, turns, at_once), None

    def _at_once(self, query: Tensor, key: Tensor, value: Tensor) -> Any:
        return self.kernel.attend(query, key, value)[0]

    def _in_turns(self, query: Tensor, key: Tensor, value: Tensor) -> Any:
        batch, num_heads, length, width = ops.shape(query)
        visible, bias = self.kernel.visible, self.kernel.bias
        is_short = length <= LONG_ROW
        heads = ops.where(is_short, num_heads, 1)  # of a turn
        groups, size = num_heads // heads, ops.where(is_short, length, LONG_ROW)
        shape = (batch * groups, heads, length, width)
        queries, keys, values = (ops.reshape(part, shape) for part in (query, key, value))
        queries, count = self.kernel.cut(queries, shape, size)

        def attend(turn: Any) -> Any:
            row = turn // count
            seen = None if visible is None else visible[row // groups]
            added = None if bias is None else bias[row % groups * heads :][:heads]
            return self.kernel.of_turn(queries[turn], keys[row], values[row], seen, added)

        turns = tf.range(batch * groups * count)
        spec = tf.TensorSpec([None] * (len(queries.shape) - 2) + [width], queries.dtype)
        context = tf.map_fn(attend, turns, fn_output_signature=spec, parallel_iterations=2)
        context = ops.reshape(context, (batch, num_heads, -1, width))[:, :, :length]
        return _swap_heads_and_sequence(context)


class FusedKernel(NamedTuple):
    """Attention by the fused kernel of a backend.

    Args:
        visible: bool `[B or 1, 1, S or 1, S]`, True if query i may attend to key j; None if all may attend to all.
    """

    visible: Any

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Any, None]:
        """The context, and None."""
        flash, visible, length = None, self.visible, ops.shape(query)[2]
        if visible is not None and keras.backend.backend() == "jax":
            # cuDNN's kernel takes no mask that broadcasts over the queries
            # (https://github.com/jax-ml/jax/issues/28974). Keras would catch JAX's error, and continue without it.
            visible = ops.broadcast_to(visible, (ops.shape(visible)[0], 1, length, length))
            # With a mask, cuDNN has no gradient for an odd length. On TPU, Keras 3.15 passes the mask of the batch's
            # first row to its flash kernel for all rows.
            if length % 2 or keras.distribution.list_devices()[0].startswith("tpu"):
                flash = False
        parts = [_swap_heads_and_sequence(part) for part in (query, key, value)]
        return ops.dot_product_attention(*parts, mask=visible, flash_attention=flash), None


def _are_many(batch: Any, num_heads: int, length: Tensor) -> Any:
    """Whether there are more scores than `_MANY_SCORES`; their number itself may be too large for int32."""
    return batch * length > _MANY_SCORES // (num_heads * length + 1)


def _swap_heads_and_sequence(part: Tensor) -> Any:
    return ops.transpose(part, (0, 2, 1, 3))
