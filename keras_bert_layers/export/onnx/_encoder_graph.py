"""The encoder as ONNX operations, ids to hidden states and pooled vectors, by fused operations of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.export.onnx._graph import FLOAT, INT32, Graph

# As many numbers of a column share a scale.
_BLOCK = 32

# MatMulNBits: inputs are rounded to 8 bits too, and products summed as integers.
_INTEGER_SUMS = 4

_LARGEST, _ZERO = 127, 128

# Keras's `UnitNormalization`: the square of the smallest length.
_LEAST_SQUARE = np.float32(1e-12)

_CURE = "Export a SavedModel."

_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "gelu_erf": ("Gelu", {"approximate": "none"}),
    "gelu_tanh": ("Gelu", {"approximate": "tanh"}),
    **{name: (name.capitalize(), {}) for name in ("relu", "mish", "tanh", "sigmoid", "elu", "softplus")},
    "leaky_relu": ("LeakyRelu", {"alpha": 0.01}),
}

# Activations that ONNX Runtime fuses with the bias before them.
_FUSED = {"gelu_erf": "BiasGelu", "gelu_tanh": "FastGelu"}


def hidden_states(graph: Graph, token_ids: str, mask: str, backbone: Any, products: Products) -> str:
    """The last hidden states, float32 `[batch, sequence, hidden_dim]`, of single texts.

    Args:
        graph: what the operations are added to.
        token_ids: int64 `[batch, sequence]`.
        mask: int32 `[batch, sequence]`, 1 = real token.
        backbone: a `BertBackbone`.
        products: how its blocks multiply with their weights.

    Raises:
        ValueError: the backbone has parts that are not BERT's, or quantized layers.
    """
    if not backbone.parts.are_of_bert:
        raise ValueError(checks.message("export", "backbone.parts", "be BERT's own in an ONNX file", "others", _CURE))
    hidden, counts = _embedded(graph, token_ids, mask, backbone)
    for index in range(backbone.config.num_layers):
        hidden = _block(graph, hidden, counts, backbone.get_layer(f"encoder_block_{index}"), products)
    return hidden


def _embedded(graph: Graph, token_ids: str, mask: str, backbone: Any) -> tuple[str, str]:
    """The embeddings `[B, S, H]`, and the number of tokens of each text, int32 `[B]`."""
    embedding = backbone.get_layer("embedding")
    positions = array(embedding.position_embedding)
    if embedding.segment_embedding is not None:
        positions = positions + array(embedding.segment_embedding)[0]
    norm = embedding.layer_norm
    offset = embedding.position_offset
    hidden, counts = graph.fused(
        "EmbedLayerNormalization",
        graph.add("Cast", token_ids, to=INT32),
        "",
        graph.constant(array(embedding.token_embedding)),
        graph.constant(positions),
        "",
        graph.constant(array(norm.gamma)),
        graph.constant(array(norm.beta)),
        mask,
        *([_positions(graph, token_ids, offset)] if offset else []),
        outputs=2,
        epsilon=norm.epsilon,
    )
    return hidden if embedding.projection is None else dense(graph, hidden, embedding.projection), counts


def _positions(graph: Graph, token_ids: str, offset: int) -> str:
    """The positions of RoBERTa, int32 `[B, S]`: they begin at the offset, and the padding's id takes none."""
    is_padding = graph.add("Equal", token_ids, graph.constant(offset - 1))
    is_token = graph.add("Cast", graph.add("Not", is_padding), to=INT32)
    counted = graph.add("CumSum", is_token, graph.constant(1))  # 1 for the first token
    last = graph.constant(offset - 1, np.int32)
    return graph.add("Where", is_padding, last, graph.add("Add", counted, last))


def _block(graph: Graph, hidden: str, counts: str, block: Any, products: Products) -> str:
    attention, feed_forward = block.attention, block.feed_forward
    joint = attention.query_key_value
    context = products.attention(
        graph, hidden, _kernel(joint), array(joint.bias), counts, num_heads=attention.num_heads
    )
    output = products.product(graph, context, _kernel(attention.output_projection))
    hidden = _added(graph, output, attention.output_projection, hidden, block.attention_layer_norm)
    inner = products.product(graph, hidden, _kernel(feed_forward.intermediate))
    bias = graph.constant(array(feed_forward.intermediate.bias))
    if block.activation in _FUSED:
        inner = graph.fused(_FUSED[block.activation], inner, bias)
    else:
        inner = activation(graph, graph.add("Add", inner, bias), block.activation)
    output = products.product(graph, inner, _kernel(feed_forward.output_projection))
    return _added(graph, output, feed_forward.output_projection, hidden, block.feed_forward_layer_norm)


def _added(graph: Graph, inputs: str, layer: Any, residual: str, norm: Any) -> str:
    """`norm(residual + inputs + the layer's bias)`."""
    return graph.fused(
        "SkipLayerNormalization",
        inputs,
        residual,
        graph.constant(array(norm.gamma)),
        graph.constant(array(norm.beta)),
        graph.constant(array(layer.bias)),
        epsilon=norm.epsilon,
    )


def dense(graph: Graph, inputs: str, layer: Any) -> str:
    """A `keras.layers.Dense` without its activation."""
    product = graph.add("MatMul", inputs, graph.constant(_kernel(layer)))
    return graph.add("Add", product, graph.constant(array(layer.bias)))


def activation(graph: Graph, inputs: str, name: str) -> str:
    """An activation by its name in `config.ACTIVATIONS`."""
    if name == "linear":
        return inputs
    if name == "silu":
        return graph.add("Mul", inputs, graph.add("Sigmoid", inputs))
    if name == "quick_gelu":
        slope = graph.constant(np.float32(1.702))
        return graph.add("Mul", inputs, graph.add("Sigmoid", graph.add("Mul", inputs, slope)))
    if name in ("relu6", "gelu_10"):
        unclipped, least, most = (inputs, 0, 6) if name == "relu6" else (activation(graph, inputs, "gelu_erf"), -10, 10)
        return graph.add("Clip", unclipped, graph.constant(np.float32(least)), graph.constant(np.float32(most)))
    operation, options = _ACTIVATIONS[name]
    return graph.add(operation, inputs, **options)


def first_tokens(graph: Graph, hidden: str) -> str:
    """The first token of every row, `[B, H]` of `[B, S, H]`."""
    return graph.add("Gather", hidden, graph.constant(0), axis=1)


def pooled(graph: Graph, hidden: str, mask: str, modes: str | Sequence[str]) -> str:
    """The poolings of `SequencePooling` side by side, `[B, modes * H]`.

    Raises:
        ValueError: a mode that an ONNX file cannot hold.
    """
    vectors = [_pooled(graph, hidden, mask, mode) for mode in ((modes,) if isinstance(modes, str) else modes)]
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


def _kernel(layer: Any) -> np.ndarray:
    """The kernel of a dense layer, with what LoRA adds."""
    if layer.quantization_mode is not None:
        rule = "not be quantized in an ONNX file"
        raise ValueError(checks.message("export", "backbone", rule, layer.quantization_mode, _CURE))
    return array(layer.kernel)


def array(weight: Any) -> np.ndarray:
    """A weight as float32."""
    return keras.ops.convert_to_numpy(weight).astype(np.float32)


class Products:
    """Products with the weights of an encoder, in float32."""

    def product(self, graph: Graph, inputs: str, kernel: np.ndarray) -> str:
        """`inputs @ kernel`."""
        return graph.add("MatMul", inputs, graph.constant(kernel))

    def attention(
        self, graph: Graph, hidden: str, kernel: np.ndarray, bias: np.ndarray, counts: str, *, num_heads: int
    ) -> str:
        """Self-attention `[B, S, H]`, with one kernel `[H, 3H]` for queries, keys and values, over `counts` tokens."""
        weights = graph.constant(kernel), graph.constant(bias)
        return graph.fused("Attention", hidden, *weights, counts, num_heads=num_heads)


class Int8Products(Products):
    """Products with weights of 8 bits, a float32 scale for every 32 of them; the inputs are rounded in the same way."""

    def product(self, graph: Graph, inputs: str, kernel: np.ndarray) -> str:
        """`inputs @ kernel`."""
        numbers, scales = quantized(kernel)
        weights = graph.constant(numbers, np.uint8), graph.constant(scales)
        sizes = dict(zip("KN", kernel.shape, strict=True))
        options = {"bits": 8, "block_size": _BLOCK, "accuracy_level": _INTEGER_SUMS}
        return graph.fused("MatMulNBits", inputs, *weights, **sizes, **options)

    def attention(
        self, graph: Graph, hidden: str, kernel: np.ndarray, bias: np.ndarray, counts: str, *, num_heads: int
    ) -> str:
        """Self-attention whose products with weights stand before it."""
        sizes = graph.constant([kernel.shape[1] // 3] * 3)
        parts = graph.add("Split", self.product(graph, hidden, kernel), sizes, outputs=3, axis=-1)
        return graph.fused("MultiHeadAttention", *parts, graph.constant(bias), counts, num_heads=num_heads)


PRODUCTS: dict[str, Products] = {"float32": Products(), "int8": Int8Products()}


def quantized(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A matrix `[K, N]` with 8 bits per number, as MatMulNBits reads it.

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
