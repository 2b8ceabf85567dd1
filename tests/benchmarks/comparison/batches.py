"""What several contenders share: versions of packages, and running a function over texts in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
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


def tokenizer_without_padding(file: Path) -> Any:
    """The tokenizer of a `tokenizer.json`, which truncates and does not pad."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_LENGTH)
    return tokenizer


def padded(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Ids and mask, int64 `(texts, tokens)`, of rows of ids; BERT's padding is 0."""
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    return ids, (np.arange(ids.shape[1]) < np.array([len(row) for row in rows])[:, None]).astype(np.int64)


def unit_means(hidden: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The mean over real tokens of hidden states `(texts, tokens, width)`, scaled to length 1."""
    weights = mask[:, :, None].astype(np.float32)
    means = (hidden * weights).sum(1) / weights.sum(1)
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def tensorflow_matrix_product(dtype: str, size: int) -> Callable[[], Any]:
    """One product of two square matrices, in TensorFlow."""
    import tensorflow as tf

    generator = tf.random.Generator.from_seed(1)
    first, second = (tf.cast(generator.normal([size, size]), dtype) for _ in range(2))

    @tf.function
    def multiply(first: Any, second: Any) -> Any:
        return tf.matmul(first, second)

    return lambda: multiply(first, second).numpy()[0, 0]
