"""Streaming means, variances and covariances, exact enough in float32."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_bert_layers.metrics._classes import read_column, row_weights

# Rounding gives equal values a spread of up to this many units in the last place of their mean.
_UNITS = 4
_MANTISSA_BITS = {"float64": 52, "float32": 23, "float16": 10}


def read_pairs(owner: str, y_true: Any, y_pred: Any, sample_weight: Any, dtype: str) -> tuple[Any, Any, Any]:
    """Both columns and the weights, `(batch,)`; the columns are 0 where the weight is 0."""
    rule = "be one value a row, (batch,) or (batch, 1)"
    true = read_column(owner, "y_true", ops.cast(y_true, dtype), rule)
    predicted = read_column(owner, "y_pred", ops.cast(y_pred, dtype), rule)
    weight = row_weights(owner, true, sample_weight, dtype)
    return ops.where(weight != 0, true, 0.0), ops.where(weight != 0, predicted, 0.0), weight


def moments(first: Any, second: Any, weight: Any) -> Any:
    """The sum of weights, both means, and the weighted sums of squares and products around them: `(6,)`."""
    total = ops.sum(weight)
    means, centred = [], []
    for column in (first, second):
        rough = ops.divide_no_nan(ops.sum(weight * column), total)
        mean = rough + ops.divide_no_nan(ops.sum(weight * (column - rough)), total)
        means.append(mean)
        centred.append(column - mean)
    products = ((0, 0), (1, 1), (0, 1))
    return ops.stack([total, *means, *(ops.sum(weight * centred[i] * centred[j]) for i, j in products)])


def merge(one: Any, other: Any) -> Any:
    """Merges the moments of two collections.

    References:
        Chan, Golub and LeVeque 1983, https://doi.org/10.1080/00031305.1983.10483115.
    """
    total = one[0] + other[0]
    share = ops.divide_no_nan(other[0], total)
    gap = other[1:3] - one[1:3]
    products = ops.stack([gap[0] * gap[0], gap[1] * gap[1], gap[0] * gap[1]])
    return ops.concatenate(
        [ops.reshape(total, (1,)), one[1:3] + gap * share, one[3:] + other[3:] + products * one[0] * share]
    )


def correlation(found: Any, pivots: Any = 0.0) -> Any:
    """Pearson's correlation from moments; NaN if one of the two columns is constant.

    Args:
        found: `(6,)`, from `moments`.
        pivots: `(2,)`, values that were subtracted from the columns before.
    """
    resolution = _UNITS * 2.0 ** -_MANTISSA_BITS.get(keras.backend.standardize_dtype(found.dtype), 7)
    squares = found[3:5]
    constant = squares <= found[0] * ops.square(resolution * (found[1:3] + pivots))
    value = found[5] / (ops.sqrt(squares[0]) * ops.sqrt(squares[1]))
    return ops.where(ops.any(constant), float("nan"), ops.clip(value, -1.0, 1.0))
