"""`quantize_embeddings`: vectors in 8 bits or 1 bit per dimension; and `QuantizedEmbeddings`, its result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Shape, Tensor

OWNER = "quantize_embeddings"


@dataclass(frozen=True)
class QuantizedEmbeddings:
    """Vectors in 8 bits or 1 bit per dimension; `quantize_embeddings` makes them, and `semantic_search` searches them.

    `embeddings[rows]` are the vectors of these rows as float32 again, without what the bits lost. To keep them in a
    file, save `codes` and `ranges`, and make the object of them again.

    Args:
        codes: int8 `(rows, vector_dim)`; or for 1 bit, uint8 `(rows, ceil(vector_dim / 8))` as `numpy.packbits` packs.
        vector_dim: the width of the vectors.
        ranges: float32 `(2, vector_dim)`, the values of the codes -128 and 127 in each dimension; None for 1 bit.

    Examples:
        >>> embeddings = quantize_embeddings(np.array([[0.5, -1.0], [-0.1, 1.0]], "float32"), "binary")
        >>> embeddings.codes.tolist(), embeddings[:].tolist()
        ([[128], [64]], [[1.0, -1.0], [-1.0, 1.0]])
    """

    codes: np.ndarray
    vector_dim: int
    ranges: np.ndarray | None = None

    @property
    def shape(self) -> Shape:
        """`(rows, vector_dim)`."""
        return len(self.codes), self.vector_dim

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        codes = self.codes[rows]
        if self.ranges is None:
            return np.unpackbits(codes, axis=-1, count=self.vector_dim) * np.float32(2) - 1
        return self.ranges[0] + (codes + np.float32(128)) * _steps(self.ranges)


def quantize_embeddings(
    embeddings: Tensor, precision: str = "int8", *, calibration_embeddings: Tensor | None = None
) -> QuantizedEmbeddings:
    """Makes vectors 4 times smaller (`"int8"`) or 32 times smaller (`"binary"`).

    With `"int8"`, the range of each dimension, from its least to its greatest value, is divided into 255 equal steps,
    and each value is rounded to the nearest one. With `"binary"`, a bit is 1 where the value is above 0.

    sentence-transformers' function of this name rounds down, so that 0 in the middle of its range becomes -1, and its
    search compares the codes themselves, with another scale in each dimension; `semantic_search` compares their
    values. `"binary"` packs the bits as its `"ubinary"`.

    Args:
        embeddings: floats `(rows, vector_dim)`.
        precision: `"int8"` or `"binary"`.
        calibration_embeddings: floats `(rows, vector_dim)` that the ranges of `"int8"` are taken from; `embeddings` if
            None. Values outside of them become the nearest end. Give them if more vectors follow, and some thousand.

    Returns:
        The quantized vectors.

    Raises:
        ValueError: an unknown precision; vectors of other shapes; no vector to take ranges from.

    Examples:
        >>> vectors = np.array([[0.0, -0.5], [0.25, 0.5], [1.0, 0.1]], "float32")
        >>> embeddings = quantize_embeddings(vectors)
        >>> embeddings.codes.tolist(), embeddings.codes.nbytes, vectors.nbytes
        ([[-128, -128], [-64, 127], [127, 25]], 6, 24)
        >>> float(abs(embeddings[:] - vectors).max()) <= 1 / 255 / 2
        True

    References:
        sentence-transformers 6, `util.quantization.quantize_embeddings`.
    """
    checks.one_of(OWNER, "precision", precision, ("int8", "binary"))
    vectors = _read("embeddings", embeddings)
    if precision == "binary":
        return QuantizedEmbeddings(np.packbits(vectors > 0, axis=-1), vectors.shape[1])
    seen = embeddings if calibration_embeddings is None else calibration_embeddings
    seen = _read("calibration_embeddings", seen, width=vectors.shape[1])
    ranges = np.stack([seen.min(axis=0), seen.max(axis=0)])
    codes = np.rint((vectors - ranges[0]) / _steps(ranges)).clip(0, 255) - 128
    return QuantizedEmbeddings(codes.astype(np.int8), vectors.shape[1], ranges)


def _steps(ranges: np.ndarray) -> np.ndarray:
    """The distance of two neighboring codes in each dimension; 1 where all values are equal."""
    steps = (ranges[1] - ranges[0]) / np.float32(255)
    return np.where(steps > 0, steps, np.float32(1))


def _read(argument: str, vectors: Tensor, width: int | None = None) -> np.ndarray:
    """Finite float32 vectors; of a given width there must be one or more."""
    found = ops.convert_to_numpy(vectors).astype(np.float32, copy=False)
    if found.ndim != 2 or not np.isfinite(found).all() or (width and (found.shape[1] != width or not len(found))):
        rule = f"be finite, of the shape (rows, {width or 'vector_dim'}){', with a row or more' if width else ''}"
        raise ValueError(checks.message(OWNER, argument, rule, checks.Shown(f"the shape {found.shape}")))
    return found
