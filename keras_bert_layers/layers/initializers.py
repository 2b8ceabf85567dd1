"""Fresh weights."""

from __future__ import annotations

import keras


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
    return keras.initializers.TruncatedNormal(stddev=initializer_range)
