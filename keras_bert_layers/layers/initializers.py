"""Initial weights."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

import keras

_are_replaced = contextvars.ContextVar("_are_replaced", default=False)


@contextlib.contextmanager
def replaced_weights() -> Iterator[None]:
    """Makes new weights zeros: a checkpoint replaces all of them, and drawing random values takes time."""
    token = _are_replaced.set(True)
    try:
        yield
    finally:
        _are_replaced.reset(token)


def truncated_normal(initializer_range: float) -> keras.initializers.Initializer:
    """A new initializer with the distribution of BERT's initial weights.

    Each weight needs its own: Keras seeds an initializer when it is made, so two weights of equal shape that share an
    instance get equal values.

    Args:
        initializer_range: standard deviation; draws further than two of them from 0 are drawn again.

    Returns:
        The initializer.

    References:
        `create_initializer` in google-research/bert, modeling.py.
    """
    if _are_replaced.get():
        return keras.initializers.Zeros()
    return keras.initializers.TruncatedNormal(stddev=initializer_range)
