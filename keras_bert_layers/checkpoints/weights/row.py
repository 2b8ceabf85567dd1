"""`WeightRow`: a row of the table of weight names, and how a layout stores a weight."""

from __future__ import annotations

import dataclasses
import enum

import numpy as np


class Layout(enum.Enum):
    """The dialect of a checkpoint; a column of the table of weight names."""

    GOOGLE = "google"
    HUGGINGFACE = "huggingface"
    KERASHUB = "kerashub"


class Transform(enum.Enum):
    """The difference between a weight of our model and the stored tensor.

    `SPLIT_LAST` and `SPLIT_FIRST` split the last or first axis H into heads: N, D.
    """

    COPY = "copy"
    TRANSPOSE = "transpose"
    SPLIT_LAST = "split_last"
    SPLIT_FIRST = "split_first"

    def stored_shape(self, shape: tuple[int, ...], num_heads: int) -> tuple[int, ...]:
        """The stored shape of a weight with this shape in our model."""
        match self:
            case Transform.TRANSPOSE:
                return shape[::-1]
            case Transform.SPLIT_LAST:
                return (*shape[:-1], num_heads, shape[-1] // num_heads)
            case Transform.SPLIT_FIRST:
                return (num_heads, shape[0] // num_heads, *shape[1:])
        return shape

    def to_stored(self, array: np.ndarray, num_heads: int) -> np.ndarray:
        """Converts our array to the layout; a view if NumPy can."""
        return array.T if self is Transform.TRANSPOSE else array.reshape(self.stored_shape(array.shape, num_heads))

    def to_ours(self, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Converts a stored array to our shape; a view if NumPy can."""
        return array.T if self is Transform.TRANSPOSE else array.reshape(shape)


@dataclasses.dataclass(frozen=True)
class StoredWeight:
    """A cell of the table: the name of a weight in a layout, and its transform.

    Args:
        name: the tensor's name in the layout.
        transform: from our model to the layout.
        alias: another name under which files of the layout may hold the same tensor, again or instead.
    """

    name: str
    transform: Transform = Transform.COPY
    alias: str | None = None


@dataclasses.dataclass(frozen=True)
class WeightRow:
    """A row of the table: a stored tensor, and the weight of our model that it is a part or all of.

    Args:
        ours: the end of the weight's `path` in our model.
        google: the tensor in checkpoints of google-research/bert; None if they have no such weight.
        huggingface: the tensor in the layout of HuggingFace transformers, without the prefix `bert.`.
        kerashub: the weight's `path` in KerasHub's model.
        qkv_index: the third of our weight's last axis that the tensor is (0 query, 1 key, 2 value); None for all of it.

    Examples:
        >>> row = WeightRow("attention/query_key_value/bias", qkv_index=1)
        >>> row.part(np.arange(6))
        array([2, 3])
        >>> row.part_shape((6,))
        (2,)
    """

    ours: str
    google: StoredWeight | None = None
    huggingface: StoredWeight | None = None
    kerashub: StoredWeight | None = None
    qkv_index: int | None = None

    def stored(self, layout: Layout) -> StoredWeight | None:
        """The cell of a layout; None if it has no such weight."""
        return getattr(self, layout.value)

    def part(self, array: np.ndarray) -> np.ndarray:
        """The part of our weight that this row describes; a view."""
        if self.qkv_index is None:
            return array
        width = array.shape[-1] // 3
        return array[..., self.qkv_index * width : (self.qkv_index + 1) * width]

    def part_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of `part` for a weight of this shape."""
        return shape if self.qkv_index is None else (*shape[:-1], shape[-1] // 3)
