"""`Blocks`: the cut of a sequence into blocks, each of which reads itself and its neighbors, for local attention."""

from __future__ import annotations

from typing import Any, NamedTuple

from keras import ops

from keras_bert_layers._internal.types import Tensor


class Blocks(NamedTuple):
    """The cut of a sequence into blocks, for local attention.

    Args:
        length: of the sequence; an int, or a scalar tensor where TensorFlow does not know it.
        size: positions of a block.
        count: number of blocks; the last one may be longer than the sequence.
        margin: positions before and behind a block that its queries may attend to.
    """

    length: Any
    size: Any
    count: Any
    margin: Any

    @classmethod
    def of(cls, length: Any, reach: int) -> Blocks | None:
        """Blocks as long as the reach; None for a sequence that is known to be so short that they save nothing.

        One that turns out to be so when the graph runs is one block without margins.
        """
        size = max(reach, 1)
        if isinstance(length, int):
            return None if length <= 3 * size else cls(length, size, -(-length // size), size)
        is_short = length <= 3 * size
        size = ops.where(is_short, ops.maximum(length, 1), size)
        return cls(length, size, (length + size - 1) // size, ops.where(is_short, 0, size))

    def cut(self, part: Tensor) -> Any:
        """`[..., F, C, D]` of `[..., S, D]`, zeros at the end."""
        return self._cut(with_zeros(part, 0, self.count * self.size - self.length))

    def with_margins(self, part: Tensor) -> Any:
        """`[..., F, K, D]` of `[..., S, D]`: each block between its margins."""
        padded = with_zeros(part, self.margin, self.count * self.size - self.length + self.margin)
        whole = self.count * self.size
        before, inside, behind = (
            self._cut(padded[..., first : first + whole, :]) for first in (0, self.margin, 2 * self.margin)
        )
        return ops.concatenate([before[..., : self.margin, :], inside, behind[..., : self.margin, :]], axis=-2)

    def _cut(self, padded: Tensor) -> Any:
        *axes, _, width = ops.shape(padded)
        return ops.reshape(padded, (*axes, self.count, self.size, width))


def with_zeros(part: Tensor, before: Any, behind: Tensor) -> Any:
    """`[..., S, D]` with zeros before and behind it."""
    *axes, _, width = ops.shape(part)
    zeros = (ops.zeros((*axes, count, width), part.dtype) for count in (before, behind))
    return ops.concatenate([next(zeros), part, next(zeros)], axis=-2)
