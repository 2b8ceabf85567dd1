"""What several contenders share: versions of packages, and running a function over texts in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import numpy as np

MAX_LENGTH = 512
LEARNING_RATE = 5e-5
WEIGHT_DECAY = 0.01
CLIP_NORM = 1.0


def versions_of(*packages: str) -> dict[str, str]:
    """Package -> its version here."""
    return {package: metadata.version(package) for package in packages}


def over_batches(encode_batch: Callable[[Sequence[str]], np.ndarray]) -> Callable[[Sequence[str], int], np.ndarray]:
    """A function of texts and a batch size, which takes the batches in the order of the texts."""

    def encode(texts: Sequence[str], batch_size: int) -> np.ndarray:
        starts = range(0, len(texts), batch_size)
        return np.concatenate([encode_batch(texts[start : start + batch_size]) for start in starts])

    return encode


def tensorflow_matrix_product(dtype: str, size: int) -> Callable[[], Any]:
    """One product of two square matrices, in TensorFlow."""
    import tensorflow as tf

    generator = tf.random.Generator.from_seed(1)
    first, second = (tf.cast(generator.normal([size, size]), dtype) for _ in range(2))

    @tf.function
    def multiply(first: Any, second: Any) -> Any:
        return tf.matmul(first, second)

    return lambda: multiply(first, second).numpy()[0, 0]
