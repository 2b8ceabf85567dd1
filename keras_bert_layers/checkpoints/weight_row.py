"""`WeightRow`: one line of the table of weight names, and how a layout stores a weight."""

from __future__ import annotations

import dataclasses
import enum

import numpy as np


class Layout(enum.Enum):
    """Who wrote a checkpoint; a column of the table of weight names."""

    GOOGLE = "google"
    HUGGINGFACE = "huggingface"
    KERASHUB = "kerashub"


class Transform(enum.Enum):
    """How a layout stores a weight of ours.

    `SPLIT_LAST` and `SPLIT_FIRST` give heads an axis of their own: H becomes N, D.
    """

    COPY = "copy"
    TRANSPOSE = "transpose"
    SPLIT_LAST = "split_last"
    SPLIT_FIRST = "split_first"

    def stored_shape(self, shape: tuple[int, ...], num_heads: int) -> tuple[int, ...]:
        """The stored shape of a weight that has this shape here."""
        match self:
            case Transform.TRANSPOSE:
                return shape[::-1]
            case Transform.SPLIT_LAST:
                return (*shape[:-1], num_heads, shape[-1] // num_heads)
            case Transform.SPLIT_FIRST:
                return (num_heads, shape[0] // num_heads, *shape[1:])
        return shape

    def to_stored(self, array: np.ndarray, num_heads: int) -> np.ndarray:
        """Our array as the layout has it; a view where NumPy can."""
        return array.T if self is Transform.TRANSPOSE else array.reshape(self.stored_shape(array.shape, num_heads))

    def to_ours(self, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """A stored array as we have it, in our shape; a view where NumPy can."""
        return array.T if self is Transform.TRANSPOSE else array.reshape(shape)


@dataclasses.dataclass(frozen=True)
class StoredWeight:
    """A cell of the table: what a layout calls a weight and how it lays it out.

    Args:
        name: the tensor's name in the layout.
        transform: from ours to the layout.
        again: another name under which files of the layout may hold the same numbers once more, or instead.
    """

    name: str
    transform: Transform = Transform.COPY
    again: str | None = None

    def in_layer(self, index: int) -> StoredWeight:
        """The cell for one encoder block: `{layer}` in the name is replaced."""
        return dataclasses.replace(self, name=self.name.format(layer=index))


@dataclasses.dataclass(frozen=True)
class WeightRow:
    """A row of the table: one stored tensor and the place in our model that it fills.

    Args:
        ours: the end of the weight's `path` in our model.
        google: the tensor in checkpoints of google-research/bert; None where they have no such weight.
        huggingface: the tensor in the layout of HuggingFace transformers, without the prefix `bert.`.
        kerashub: the weight's `path` in KerasHub's model.
        third: which third of our weight's last axis the tensor fills (0 query, 1 key, 2 value); None for all of it.

    Examples:
        >>> row = WeightRow("attention/query_key_value/bias", third=1)
        >>> row.part(np.arange(6))
        array([2, 3])
        >>> row.part_shape((6,))
        (2,)
    """

    ours: str
    google: StoredWeight | None = None
    huggingface: StoredWeight | None = None
    kerashub: StoredWeight | None = None
    third: int | None = None

    def stored(self, layout: Layout) -> StoredWeight | None:
        """The cell of a layout; None where it has no such weight."""
        return getattr(self, layout.value)

    def part(self, array: np.ndarray) -> np.ndarray:
        """The part of our weight that this row stands for; a view."""
        if self.third is None:
            return array
        width = array.shape[-1] // 3
        return array[..., self.third * width : (self.third + 1) * width]

    def part_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of `part` for a weight of this shape."""
        return shape if self.third is None else (*shape[:-1], shape[-1] // 3)

    def in_layer(self, index: int) -> WeightRow:
        """The row for one encoder block: `{layer}` in every name is replaced."""
        google, huggingface, kerashub = (
            cell and cell.in_layer(index) for cell in (self.google, self.huggingface, self.kerashub)
        )
        ours = self.ours.format(layer=index)
        return dataclasses.replace(self, ours=ours, google=google, huggingface=huggingface, kerashub=kerashub)
