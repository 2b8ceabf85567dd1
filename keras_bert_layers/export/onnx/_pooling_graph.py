"""Poolings as ONNX operations: hidden states to vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.export.onnx._graph import FLOAT, Graph

# Keras's `UnitNormalization`: the square of the smallest length.
_LEAST_SQUARE = np.float32(1e-12)


def first_tokens(graph: Graph, hidden: str) -> str:
    """The first token of every row, `[B, H]` of `[B, S, H]`."""
    return graph.add("Gather", hidden, graph.constant(0), axis=1)


def pooled(graph: Graph, hidden: str, mask: str, modes: Sequence[str]) -> str:
    """The poolings of `SequencePooling` side by side, `[B, modes * H]`.

    Raises:
        ValueError: a mode that an ONNX file cannot hold.
    """
    vectors = [_pooled(graph, hidden, mask, mode) for mode in modes]
    return vectors[0] if len(vectors) == 1 else graph.add("Concat", *vectors, axis=-1)


def _pooled(graph: Graph, hidden: str, mask: str, mode: str) -> str:
    if mode == "cls":
        return first_tokens(graph, hidden)
    real = graph.add("Unsqueeze", graph.add("Cast", mask, to=FLOAT), graph.constant([2]))  # [B, S, 1]
    tokens = graph.constant([1])
    if mode == "max":
        lowest = graph.constant(np.float32(np.finfo(np.float32).min))
        is_real = graph.add("Greater", real, graph.constant(np.float32(0)))
        return graph.add("ReduceMax", graph.add("Where", is_real, hidden, lowest), tokens, keepdims=0)
    total = graph.add("ReduceSum", graph.add("Mul", hidden, real), tokens, keepdims=0)
    count = graph.add("ReduceSum", real, tokens, keepdims=0)  # [B, 1], at least 2
    if mode == "mean_sqrt_len_tokens":
        count = graph.add("Sqrt", count)
    elif mode != "mean":
        known = ["cls", "max", "mean", "mean_sqrt_len_tokens"]
        raise ValueError(checks.message("export", "pooling", f"be of {known} in an ONNX file", mode))
    return graph.add("Div", total, count)


def unit_vectors(graph: Graph, vectors: str) -> str:
    """The vectors `[B, H]` scaled to Euclidean length 1."""
    squares = graph.add("ReduceSumSquare", vectors, graph.constant([-1]))
    return graph.add("Div", vectors, graph.add("Sqrt", graph.add("Max", squares, graph.constant(_LEAST_SQUARE))))
