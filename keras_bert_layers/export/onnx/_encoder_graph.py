"""The encoder as ONNX operations: ids to hidden states, by the fused operations of ONNX Runtime."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.export.onnx._graph import INT32, Graph
from keras_bert_layers.export.onnx._products import Products

_CURE = "Export a SavedModel."


def array(weight: Any) -> np.ndarray:
    """A weight as float32."""
    return keras.ops.convert_to_numpy(weight).astype(np.float32)


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


def dense(graph: Graph, inputs: str, layer: Any) -> str:
    """A `keras.layers.Dense` without its activation."""
    product = graph.add("MatMul", inputs, graph.constant(_kernel(layer)))
    return graph.add("Add", product, graph.constant(array(layer.bias)))


def activation(graph: Graph, inputs: str, name: str) -> str:
    """An activation by its name in `config.ACTIVATIONS`."""
    if name == "linear":
        return inputs
    if name == "gelu_erf":
        return graph.add("Gelu", inputs, approximate="none")
    if name == "gelu_tanh":
        return graph.add("Gelu", inputs, approximate="tanh")
    if name == "silu":
        return graph.add("Mul", inputs, graph.add("Sigmoid", inputs))
    if name == "relu6":
        return graph.add("Clip", inputs, graph.constant(np.float32(0)), graph.constant(np.float32(6)))
    return graph.add({"relu": "Relu", "mish": "Mish", "tanh": "Tanh", "sigmoid": "Sigmoid"}[name], inputs)


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
    if block.activation == "gelu_erf":
        inner = graph.fused("BiasGelu", inner, bias)
    elif block.activation == "gelu_tanh":
        inner = graph.fused("FastGelu", inner, bias)
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


def _kernel(layer: Any) -> np.ndarray:
    """The kernel of a dense layer, with what LoRA adds."""
    if layer.quantization_mode is not None:
        rule = "not be quantized in an ONNX file"
        raise ValueError(checks.message("export", "backbone", rule, layer.quantization_mode, _CURE))
    return array(layer.kernel)
