"""`similar_pairs`: near duplicates and the most similar pairs of many vectors (paraphrase mining)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.tasks.recipes.unit_vectors import unit_vectors

OWNER = "similar_pairs"
MOST_PAIRS = 1_000_000
_BLOCK = 2**24  # cosines at a time, 64 MiB
_ROUNDING = 1e-5  # of float32, as equal texts must reach 1


def similar_pairs(
    vectors: Tensor,
    threshold: float = 0.9,
    *,
    max_pairs: int = MOST_PAIRS,
    progress: Callable[[int], object] | None = None,
) -> list[tuple[int, int, float]]:
    """The pairs of vectors whose cosine reaches a threshold, the largest cosine first: near duplicates of texts.

    Every vector is compared with every other one, in blocks, so that memory does not grow with the square of their
    number. `encoder.predict(texts)` of a sentence encoder makes the vectors. The command `similar` does the same with
    the rows of a file.

    Args:
        vectors: floats `(rows, vector_dim)`, of any length.
        threshold: the least cosine of a pair, between -1 and 1.
        max_pairs: how many pairs to keep, at most: the most similar ones.
        progress: a function that is called for each block, with the number of rows that were compared.

    Returns:
        `(row, other_row, cosine)` of each pair, with the lower row first.

    Raises:
        ValueError: `vectors` does not have two axes, or `threshold` or `max_pairs` is out of its range.

    Examples:
        >>> vectors = np.array([[1, 0], [0, 1], [3, 4], [2, 0]], "float32")
        >>> [(row, other, round(cosine, 2)) for row, other, cosine in similar_pairs(vectors, 0.7)]
        [(0, 3, 1.0), (1, 2, 0.8)]

    References:
        sentence-transformers, `util.paraphrase_mining`.
    """
    found = ops.convert_to_numpy(vectors)
    if found.ndim != 2:
        shape = checks.Shown(f"the shape {found.shape}")
        raise ValueError(checks.message(OWNER, "vectors", "have the shape (rows, vector_dim)", shape))
    if not -1 <= threshold <= 1:
        raise ValueError(checks.message(OWNER, "threshold", "be in [-1, 1]", threshold))
    checks.positive_integer(OWNER, "max_pairs", max_pairs)
    units = unit_vectors(found.astype(np.float32, copy=False))
    size = max(1, _BLOCK // max(1, len(units)))
    pairs, cosines = np.empty((0, 2), np.int64), np.empty(0, np.float32)
    for start in range(0, len(units), size):
        block = units[start : start + size] @ units[start:].T
        reached = np.argwhere(np.triu(block >= threshold - _ROUNDING, k=1))
        pairs = np.concatenate([pairs, reached + start])
        cosines = np.concatenate([cosines, block[tuple(reached.T)]])
        order = np.argsort(-cosines, kind="stable")[:max_pairs]
        pairs, cosines = pairs[order], cosines[order]
        if progress is not None:
            progress(len(block))
    return [(row, other, cosine) for (row, other), cosine in zip(pairs.tolist(), cosines.tolist(), strict=True)]
