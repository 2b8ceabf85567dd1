"""Fresh weights."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

import keras

_are_replaced = contextvars.ContextVar("_are_replaced", default=False)


@contextlib.contextmanager
def replaced_weights() -> Iterator[None]:
    """Inside, weights are made of zeros: whoever reads a checkpoint replaces all of them, and drawing takes time."""
    token = _are_replaced.set(True)
    try:
        yield
    finally:
        _are_replaced.reset(token)


def truncated_normal(initializer_range: float) -> keras.initializers.Initializer:
    """A new initializer, as BERT's fresh weights are drawn.

    Every weight gets its own: Keras gives an initializer its seed when it is made, so one instance that two weights of
    equal shape share gives them equal values.

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
