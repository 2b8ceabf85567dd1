"""The products with weights in an encoder of ONNX operations: in float32, or with weights of 8 bits."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from keras_bert_layers.export.onnx._graph import Graph

# As many numbers of a column share a scale.
_BLOCK = 32
# MatMulNBits: inputs are rounded to 8 bits too, and products summed as integers.
_INTEGER_SUMS = 4
_LARGEST, _ZERO = 127, 128


class Products(Protocol):
    """How an encoder multiplies with its weights."""

    def product(self, graph: Graph, inputs: str, kernel: np.ndarray) -> str:
        """`inputs @ kernel`."""

    def attention(
        self, graph: Graph, hidden: str, kernel: np.ndarray, bias: np.ndarray, counts: str, *, num_heads: int
    ) -> str:
        """Self-attention `[B, S, H]`, with one kernel `[H, 3H]` for queries, keys and values, over `counts` tokens."""


class Float32Products:
    """Products in float32."""

    def product(self, graph: Graph, inputs: str, kernel: np.ndarray) -> str:
        """`inputs @ kernel`."""
        return graph.add("MatMul", inputs, graph.constant(kernel))

    def attention(
        self, graph: Graph, hidden: str, kernel: np.ndarray, bias: np.ndarray, counts: str, *, num_heads: int
    ) -> str:
        """Self-attention in one operation."""
        weights = graph.constant(kernel), graph.constant(bias)
        return graph.fused("Attention", hidden, *weights, counts, num_heads=num_heads)


class Int8Products:
    """Products with weights of 8 bits, a float32 scale for every 32 of them; the inputs are rounded alike."""

    def product(self, graph: Graph, inputs: str, kernel: np.ndarray) -> str:
        """`inputs @ kernel`."""
        numbers, scales = quantized(kernel)
        return graph.fused(
            "MatMulNBits",
            inputs,
            graph.constant(numbers, np.uint8),
            graph.constant(scales),
            K=kernel.shape[0],
            N=kernel.shape[1],
            bits=8,
            block_size=_BLOCK,
            accuracy_level=_INTEGER_SUMS,
        )

    def attention(
        self, graph: Graph, hidden: str, kernel: np.ndarray, bias: np.ndarray, counts: str, *, num_heads: int
    ) -> str:
        """Self-attention whose products with weights stand before it."""
        sizes = graph.constant([kernel.shape[1] // 3] * 3)
        parts = graph.add("Split", self.product(graph, hidden, kernel), sizes, outputs=3, axis=-1)
        return graph.fused("MultiHeadAttention", *parts, graph.constant(bias), counts, num_heads=num_heads)


PRODUCTS: dict[Any, Products] = {"float32": Float32Products(), "int8": Int8Products()}


def quantized(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A matrix `[K, N]` of 8 bits a number, as MatMulNBits reads it.

    Returns:
        Numbers, uint8 `[N, blocks, 32]`, with 128 for zero, and scales, float32 `[N, blocks]`.
    """
    num_rows, num_columns = kernel.shape
    num_blocks = -(-num_rows // _BLOCK)
    padded = np.zeros((num_blocks * _BLOCK, num_columns), np.float32)
    padded[:num_rows] = kernel
    blocks = padded.T.reshape(num_columns, num_blocks, _BLOCK)
    scales = np.abs(blocks).max(-1) / _LARGEST
    scales[scales == 0] = 1
    return (np.rint(blocks / scales[..., None]) + _ZERO).astype(np.uint8), scales.astype(np.float32)
