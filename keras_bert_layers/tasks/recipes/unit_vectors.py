"""Vectors divided by their lengths, so that inner products are cosines."""

import numpy as np


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; zeros stay zeros.

    Args:
        vectors: float32 `(rows, vector_dim)`, or one vector `(vector_dim,)`.

    Examples:
        >>> unit_vectors(np.array([[3, 4], [0, 0]], "float32")).tolist()
        [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)
