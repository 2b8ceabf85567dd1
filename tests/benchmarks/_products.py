"""The bound that comparisons of speed state: what the matrix products of an encoder's blocks take, alone."""

from __future__ import annotations

import time
from typing import Any


def seconds_of_products(backbone: Any, num_tokens: int, *, trains: bool = False) -> float:
    """The processor seconds of the products of all dense layers in the blocks, for tokens without padding.

    Args:
        backbone: the encoder; all of its blocks have weights of the same shapes.
        num_tokens: how many tokens are computed at once.
        trains: whether the two products of a backward pass count too.
    """
    import tensorflow as tf

    kernels = [tf.constant(weight) for weight in backbone.blocks[0].get_weights() if weight.ndim == 2]
    sides = [[tf.random.normal((num_tokens, size)) for size in kernel.shape] for kernel in kernels]
    start = time.process_time()
    for _ in backbone.blocks:
        for (inputs, gradient), kernel in zip(sides, kernels, strict=True):
            tf.matmul(inputs, kernel)
            if trains:
                tf.matmul(gradient, kernel, transpose_b=True)
                tf.matmul(inputs, gradient, transpose_a=True)
    return time.process_time() - start
