"""The matrix products of an encoder alone, in one `tf.function`: the lower bound of TensorFlow's kernels.

A text has one token per word, and two special ones. The vectors mean nothing; the weights are random.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from comparison.batches import over_batches, versions_of


def start() -> dict[str, str]:
    import tensorflow  # noqa: F401

    return versions_of("tensorflow")


def encoder(folder: Path, dtype: str) -> Callable:
    import tensorflow as tf

    config = json.loads((folder / "huggingface/config.json").read_text(encoding="utf-8"))
    width, inner = config["hidden_size"], config["intermediate_size"]
    shapes = [(width, 3 * width), (width, width), (width, inner), (inner, width)]
    kernels = [
        [tf.Variable(tf.random.normal(shape, stddev=0.02)) for shape in shapes]
        for _ in range(config["num_hidden_layers"])
    ]

    @tf.function(input_signature=[tf.TensorSpec((None, width))])
    def products(hidden: tf.Tensor) -> tf.Tensor:
        for joint, output, intermediate, back in kernels:
            hidden = (hidden @ joint)[:, :width] @ output
            hidden = hidden @ intermediate @ back
        return hidden

    def encode_batch(texts: list[str]) -> np.ndarray:
        num_tokens = sum(len(text.split()) + 2 for text in texts)
        return products(np.ones((num_tokens, width), np.float32)).numpy()[: len(texts)]

    return over_batches(encode_batch)
