"""The arithmetic behind the table: operations of matrix products, quantiles, ratios."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """The sizes of a BERT that its matrix products depend on."""

    hidden_dim: int
    intermediate_dim: int
    num_layers: int


def matrix_product_operations(sizes: Sizes, lengths: Iterable[int]) -> int:
    """Floating-point operations of all matrix products of a forward pass over texts of these lengths in tokens.

    A multiplication and an addition count as two. Real tokens count, padding does not, so that a contender that
    computes padding has a lower share of the peak. A layer has four products of `hidden x hidden` and two of
    `hidden x intermediate` per token, and two of `length x length x hidden` per text. Embeddings, norms, softmax,
    pooling and the pooler are left out.
    """
    hidden, wide = sizes.hidden_dim, sizes.intermediate_dim
    dense, attention = 2 * (4 * hidden * hidden + 2 * hidden * wide), 4 * hidden
    return sizes.num_layers * sum(dense * length + attention * length * length for length in lengths)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which a share of the values lies, between neighbours by the distance; 0.5 is the median."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def median_ratio(slower: Sequence[float], faster: Sequence[float]) -> float:
    """How many times as long the first takes: the median of the ratios round by round.

    Both took part in the same rounds, so that what slows a round as a whole leaves the ratio alone.
    """
    return statistics.median(first / second for first, second in zip(slower, faster, strict=True))


def best_of(medians: dict[str, float]) -> str | None:
    """The name with the least seconds; None where there is no name."""
    return min(medians, key=medians.__getitem__) if medians else None
