"""What every reader of stored tensors offers, whatever the file format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np


class TensorInfo(NamedTuple):
    """What a file says of one tensor, before any of its numbers is read.

    Args:
        dtype: the number format in safetensors' words: `"F32"`, `"F16"`, `"BF16"`, `"F64"`, `"I64"`, ...
        shape: the shape as stored.
    """

    dtype: str
    shape: tuple[int, ...]


FLOAT_DTYPES = ("F32", "F16", "BF16", "F64")
"""The number formats that a weight may be stored in; all are read as float32."""


class TensorFile(Protocol):
    """Named tensors, read one at a time, so that a checkpoint is never in memory twice."""

    @property
    def infos(self) -> Mapping[str, TensorInfo]:
        """What is known of each tensor, by its stored name."""
        ...

    def read(self, name: str) -> np.ndarray:
        """One tensor of a float format as float32, in its stored shape."""
        ...
