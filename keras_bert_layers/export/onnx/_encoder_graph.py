"""The encoder as ONNX operations, ids to hidden states and pooled vectors, by fused operations of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export.onnx._graph import FLOAT, INT32, UINT8, Tensor
from keras_bert_layers.export.onnx._rows_graph import FAR, PackedRows, Rows, packed
from keras_bert_layers.layers.disentangled_self_attention import DisentangledSelfAttention
from keras_bert_layers.layers.feed_forward import FeedForward, GatedFeedForward
from keras_bert_layers.layers.positions import Positions, RotaryPositions
from keras_bert_layers.layers.self_attention import SelfAttention
from keras_bert_layers.layers.token_convolution import TokenConvolution

# Inputs of 8 bits are from 1 to 255, with 128 for zero.
_LARGEST, _ZERO = 127, 128

# Processors without VNNI sum two products of 8 bits in 16: 255 times the sum of two weights must fit.
_LARGEST_PAIR = 128

# Columns of the inputs of which a number is so many times the median column's largest are multiplied in float32.
_OUTLIER = 3

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


def hidden_states(
    rows: Rows, backbone: BertBackbone, products: Products, *, first_token_only: bool = False, of_padding: bool = False
) -> Tensor:
    """The last hidden states, float32 `[batch, sequence, hidden_dim]`, of rows that hold one text or one pair each.

    Args:
        rows: the ids.
        backbone: a `BertBackbone`.
        products: how its blocks multiply with their weights.
        first_token_only: whether only those of the first tokens are needed; the result may be `[batch, 1, hidden_dim]`.
        of_padding: whether those of padding are needed too, which nothing attends to.

    Raises:
        ValueError: the backbone has parts that only Keras can compute, or quantized layers.
    """
    blocks = backbone.blocks
    for block in blocks:
        if type(block.attention) not in (SelfAttention, DisentangledSelfAttention):
            rule = "be a SelfAttention in an ONNX file"
            raise ValueError(checks.message("export", "attention", rule, type(block.attention), _CURE))
    others = ((block.attention.window, block.attention.positions, block.convolution) for block in blocks)
    is_plain = all(parts == (None, None, None) for parts in others)
    pack = packed(rows, backbone.get_layer("embedding").position_offset) if is_plain and not of_padding else None
    hidden, counts = _embedded(rows if pack is None else pack, backbone)
    size, longest = backbone.config.hidden_dim, backbone.config.max_sequence_length
    biases: dict[tuple[int, int | None], Tensor | None] = {}
    for index, block in enumerate(blocks):
        only_first = first_token_only and index == len(blocks) - 1 and backbone.parts.are_of_bert
        if pack is not None and only_first:
            hidden, counts, pack = pack.unpacked(hidden, size), rows.num_tokens, None
        kind = id(block.attention.positions), block.attention.window
        if pack is None and kind not in biases:
            biases[kind] = _bias(block.attention, longest, hidden)
        bias = biases[kind] if pack is None else pack.bias
        output = _block(hidden, block, products, counts, bias, only_first=only_first)
        convolution = block.convolution
        hidden = output if convolution is None else _with_convolution(hidden, output, convolution, rows.mask)
    hidden = hidden if pack is None else pack.unpacked(hidden, size)
    return layer_norm(hidden, backbone.get_layer("final_layer_norm")) if backbone.parts.normalize_first else hidden


def _embedded(rows: Rows | PackedRows, backbone: BertBackbone) -> tuple[Tensor, Tensor | None]:
    """The embeddings `[B, S, H]`, and the number of tokens of each row, int32 `[B]`; None for packed rows."""
    graph, embedding = rows.ids.graph, backbone.get_layer("embedding")
    offset, positions = embedding.position_offset, embedding.position_embedding
    if positions is None:
        positions = np.zeros((offset + embedding.max_sequence_length, embedding.token_embedding.shape[-1]))
    kernel = _kernel(embedding.projection) if embedding.projects_first and embedding.projection is not None else None

    def table(matrix: Any) -> np.ndarray:
        return array(matrix) if kernel is None else array(matrix) @ kernel

    tokens, positions, segments = table(embedding.token_embedding), table(positions), None
    if embedding.segment_embedding is not None and rows.segments is None:
        positions = positions + table(embedding.segment_embedding)[0]
    elif embedding.segment_embedding is not None:
        if embedding.num_segments == 1:
            rule = "have two segments (`type_vocab_size`), as pairs do"
            raise ValueError(checks.message("export", "backbone", rule, 1, "Give single texts."))
        segments = graph.constant(table(embedding.segment_embedding))
    norm = embedding.layer_norm
    if isinstance(rows, PackedRows):
        mask, own = None, [rows.positions]
    else:
        mask, own = rows.mask, [rows.with_offset(offset)] if offset else []
    hidden, counts = graph.fused(
        "EmbedLayerNormalization",
        rows.ids.cast(INT32),
        None if segments is None else rows.segments,
        graph.weight(embedding.token_embedding, tokens) if kernel is None else graph.constant(tokens),
        graph.constant(positions),
        segments,
        graph.constant(array(norm.gamma)),
        graph.constant(_beta(norm)),
        mask,
        *own,
        outputs=[FLOAT, INT32],
        epsilon=norm.epsilon,
    )
    is_done = embedding.projection is None or kernel is not None
    return hidden if is_done else dense(hidden, embedding.projection), None if mask is None else counts


def _bias(attention: SelfAttention, longest: int, hidden: Tensor) -> Tensor | None:
    """What positions and a window add to the scores, `[1, heads or 1, S, S]`; None for nothing."""
    graph, length, positions = hidden.graph, hidden.size(1), attention.positions
    bias = None
    if attention.window is not None:
        place = graph.range(length)
        is_far = graph.add("Abs", place.column() - place) > attention.window // 2
        bias = (is_far.cast(FLOAT) * FAR).column(0).column(0)
    if positions is None:
        return bias
    if type(positions).rotated is not Positions.rotated and not isinstance(positions, RotaryPositions):
        rule = "not override `rotated`, which only Keras can compute, in an ONNX file"
        raise ValueError(checks.message("export", "positions", rule, type(positions), _CURE))
    found = positions.bias(longest, longest)
    if found is None:
        return bias
    length = length.column(0)
    of_positions = graph.constant(array(found)[None]).slice(0, length, 2).slice(0, length, 3)
    return of_positions if bias is None else of_positions + bias


def _block(
    hidden: Tensor,
    block: keras.layers.Layer,
    products: Products,
    counts: Tensor | None,
    bias: Tensor | None,
    *,
    only_first: bool,
) -> Tensor:
    """The output of a block for all tokens `[B, S, H]`, or for the first ones `[B, 1, H]`."""
    attention, feed_forward = block.attention, block.feed_forward
    if block.normalize_first:
        normalized = layer_norm(hidden, block.attention_layer_norm) if block.normalizes_attention else hidden
        context = products.attention(normalized, attention, counts, bias)
        output = products.product(context, attention.output_projection)
        hidden = hidden + _with_bias(output, attention.output_projection)
        output = _inner(layer_norm(hidden, block.feed_forward_layer_norm), feed_forward, products)
        output = products.product(output, feed_forward.output_projection)
        return hidden + _with_bias(output, feed_forward.output_projection)
    context = products.attention(hidden, attention, counts, bias, only_first=only_first)
    output = products.product(context, attention.output_projection)
    hidden = hidden.slice(0, 1, 1) if only_first else hidden
    hidden = _added(output, attention.output_projection, hidden, block.attention_layer_norm)
    output = products.product(_inner(hidden, feed_forward, products), feed_forward.output_projection)
    return _added(output, feed_forward.output_projection, hidden, block.feed_forward_layer_norm)


def _with_convolution(hidden: Tensor, output: Tensor, layer: keras.layers.Layer, mask: Tensor) -> Tensor:
    """The output of a block with a `TokenConvolution` of what the block reads; both `[B, S, H]`."""
    if type(layer) is not TokenConvolution:
        raise ValueError(checks.message("export", "convolution", "be a TokenConvolution", type(layer), _CURE))
    graph, reach = hidden.graph, layer.kernel_size // 2
    columns = graph.add("Transpose", hidden * mask.cast(FLOAT).column(2), perm=[0, 2, 1])
    weights = graph.constant(array(layer.kernel).T), graph.constant(array(layer.bias))
    found = graph.add("Transpose", graph.add("Conv", columns, *weights, pads=[reach, reach]), perm=[0, 2, 1])
    return layer_norm(output + activation(found, layer.activation), layer.layer_norm)


def _inner(hidden: Tensor, feed_forward: keras.layers.Layer, products: Products) -> Tensor:
    """What a feed-forward layer computes before its output projection."""
    if type(feed_forward) not in (FeedForward, GatedFeedForward):
        rule = "be a FeedForward or a GatedFeedForward in an ONNX file"
        raise ValueError(checks.message("export", "feed_forward", rule, type(feed_forward), _CURE))
    inner = products.product(hidden, feed_forward.intermediate)
    if isinstance(feed_forward, GatedFeedForward):
        sizes = hidden.graph.constant([feed_forward.intermediate_dim] * 2)
        inner = _with_bias(inner, feed_forward.intermediate)
        gate, inner = hidden.graph.add("Split", inner, sizes, outputs=2, axis=-1)
        return activation(gate, feed_forward.activation) * inner
    if feed_forward.activation in _FUSED:
        bias = hidden.graph.constant(_bias_of(feed_forward.intermediate))
        return hidden.graph.fused(_FUSED[feed_forward.activation], inner, bias)
    return activation(_with_bias(inner, feed_forward.intermediate), feed_forward.activation)


def _added(inputs: Tensor, layer: keras.layers.Layer, residual: Tensor, norm: keras.layers.Layer) -> Tensor:
    """`norm(residual + inputs + the layer's bias)`.

    ONNX Runtime's `SkipLayerNormalization`, which it makes of an `Add` too, takes five times as long on a CPU.
    """
    return layer_norm(inputs.graph.add("Sum", inputs, residual, inputs.graph.constant(_bias_of(layer))), norm)


def layer_norm(hidden: Tensor, norm: keras.layers.Layer) -> Tensor:
    """A `LayerNorm` over the last axis."""
    weights = hidden.graph.constant(array(norm.gamma)), hidden.graph.constant(_beta(norm))
    return hidden.graph.add("LayerNormalization", hidden, *weights, axis=-1, epsilon=norm.epsilon)


def dense(inputs: Tensor, layer: keras.layers.Layer) -> Tensor:
    """A `keras.layers.Dense` without its activation."""
    return _with_bias(inputs @ _kernel(layer), layer)


def _with_bias(product: Tensor, layer: keras.layers.Layer) -> Tensor:
    """The product with a dense layer's kernel, and its bias if it has one."""
    return product + array(layer.bias) if layer.use_bias else product


def _bias_of(layer: keras.layers.Layer) -> np.ndarray:
    """The bias of a dense layer; zeros if it has none."""
    return array(layer.bias) if layer.use_bias else np.zeros(layer.kernel.shape[-1], np.float32)


def _beta(norm: keras.layers.Layer) -> np.ndarray:
    """The beta of a `LayerNorm`; zeros if it has none."""
    return array(norm.beta) if norm.center else np.zeros(norm.gamma.shape, np.float32)


def activation(inputs: Tensor, name: str) -> Tensor:
    """An activation by its name in `config.ACTIVATIONS`."""
    if name == "linear":
        return inputs
    if name in ("silu", "quick_gelu"):
        slope = inputs if name == "silu" else inputs * np.float32(1.702)
        return inputs * inputs.graph.add("Sigmoid", slope)
    if name in ("relu6", "gelu_10"):
        unclipped, least, most = (inputs, 0, 6) if name == "relu6" else (activation(inputs, "gelu_erf"), -10, 10)
        return unclipped.maximum(least).minimum(most)
    operation, options = _ACTIVATIONS[name]
    return inputs.graph.add(operation, inputs, **options)


def first_tokens(hidden: Tensor) -> Tensor:
    """The first token of every row, `[B, H]` of `[B, S, H]`."""
    return hidden.take(0, axis=1)


def pooled(hidden: Tensor, mask: Tensor, modes: str | Sequence[str]) -> Tensor:
    """The poolings of `SequencePooling` side by side, `[B, modes * H]`; each row has a real token."""
    modes = (modes,) if isinstance(modes, str) else modes
    return hidden.graph.concat([_pooled(hidden, mask, mode) for mode in modes], axis=-1)


def _pooled(hidden: Tensor, mask: Tensor, mode: str) -> Tensor:
    if mode == "cls":
        return first_tokens(hidden)
    real = mask.cast(FLOAT).column(2)  # [B, S, 1]
    if mode == "max":
        return (real > 0).where(hidden, np.finfo(np.float32).min).reduced("Max", 1)
    if mode in ("weightedmean", "lasttoken"):
        place = (hidden.graph.range(hidden.size(1)).cast(FLOAT) + 1).column()  # [S, 1]
        real = real * place
        if mode == "lasttoken":
            real = real.equals(real.reduced("Max", 1, keepdims=True)).cast(FLOAT)
    count = real.reduced("Sum", 1)  # [B, 1]
    count = hidden.graph.add("Sqrt", count) if mode == "mean_sqrt_len_tokens" else count
    return (hidden * real).reduced("Sum", 1) / count


def unit_vectors(vectors: Tensor) -> Tensor:
    """The vectors `[B, H]` scaled to Euclidean length 1."""
    squares = vectors.reduced("SumSquare", -1, keepdims=True)
    return vectors / vectors.graph.add("Sqrt", squares.maximum(_LEAST_SQUARE))


def _kernel(layer: keras.layers.Layer) -> np.ndarray:
    """The kernel of a dense layer, with what LoRA adds."""
    if layer.quantization_mode is not None:
        rule = "not be quantized in an ONNX file"
        raise ValueError(checks.message("export", "backbone", rule, layer.quantization_mode, _CURE))
    return array(layer.kernel)


def array(weight: Tensor) -> np.ndarray:
    """A weight as float32."""
    return keras.ops.convert_to_numpy(weight).astype(np.float32)


class Products:
    """Products with the weights of an encoder, in float32."""

    #: Whether one operation multiplies with the weights of queries, keys and values, and attends.
    fuses_attention = True

    def product(self, inputs: Tensor, layer: keras.layers.Layer, first: int = 0, end: int | None = None) -> Tensor:
        """`inputs @ kernel` of a dense layer, or of the columns of its kernel from `first` to before `end`."""
        return inputs @ _kernel(layer)[:, first:end]

    def attention(
        self,
        hidden: Tensor,
        layer: keras.layers.Layer,
        counts: Tensor | None,
        bias: Tensor | None,
        *,
        only_first: bool = False,
    ) -> Tensor:
        """The context `[B, S, H]` of a `SelfAttention`, or that of the first tokens `[B, 1, H]`.

        Args:
            hidden: `[B, S, H]`.
            layer: the layer; its output projection is not computed here.
            counts: how many tokens of each row are real, int32 `[B]`; None where the bias says it.
            bias: what is added to the scores, `[1, heads or 1, S, S]`, or None.
            only_first: whether only the first token of each row is a query.
        """
        graph, merged, offsets = hidden.graph, layer.query_key_value, _bias_of(layer.query_key_value)
        rotary = layer.positions if isinstance(layer.positions, RotaryPositions) else None
        options = {"num_heads": layer.num_heads, "unidirectional": int(layer.causal)}
        is_plain = type(layer) is SelfAttention and rotary is None
        if self.fuses_attention and not only_first and is_plain:
            weights = graph.constant(_kernel(merged)), graph.constant(offsets)
            return graph.fused("Attention", hidden, *weights, counts, None, bias, **options)
        width = len(offsets) // 3
        parts = [self.product(hidden.slice(0, 1, 1), merged, end=width)] if only_first else []
        num_parts = 3 - len(parts)
        others = self.product(hidden, merged, width * len(parts))
        parts += graph.add("Split", others, graph.constant([width] * num_parts), outputs=num_parts, axis=-1)
        added: Any = graph.constant(offsets)
        if not is_plain:
            parts = [part + offsets[width * index :][:width] for index, part in enumerate(parts)]
            added = None
        if rotary is not None:
            parts = [*(_rotated(part, rotary, layer.num_heads, width) for part in parts[:2]), parts[2]]
        if isinstance(layer, DisentangledSelfAttention):
            options["scale"] = (width // layer.num_heads * layer.num_products) ** -0.5
            of_positions = _of_positions(parts[0], parts[1], layer, options["scale"])
            bias = of_positions if bias is None else of_positions if of_positions is None else of_positions + bias
        return graph.fused("MultiHeadAttention", *parts, added, counts, bias, **options)


def _of_positions(query: Tensor, key: Tensor, layer: DisentangledSelfAttention, scale: float) -> Tensor | None:
    """What DeBERTa's products with positions add to the scores `[B, N, S, S]`, of queries and keys `[B, S, H]`."""
    graph, batch, length, longest = query.graph, query.size(0), query.size(1), layer.positions.max_sequence_length
    vectors, indices = layer.positions.between(longest, longest)  # of the distances -longest, ..., longest
    bounds = (longest + 1 - length).column(0), (longest + 1 + length).column(0)
    added: Tensor | None = None
    for part, hidden, is_there in ((1, query, layer.content_to_position), (0, key, layer.position_to_content)):
        if not is_there:
            continue
        table = array(layer.heads_of(vectors, part, np.arange(len(vectors)))) * np.float32(scale)
        chosen = graph.constant(indices[::-1] if part else indices).slice(*bounds)
        of_distances = graph.constant(table.swapaxes(-1, -2)).take(chosen, axis=3)  # [1, N, D, 2 S]
        heads = graph.add("Transpose", hidden.reshape(batch, length, layer.num_heads, -1), perm=[0, 2, 1, 3])
        # Each row is moved by one more, as in `DisentangledSelfAttention`.
        flat = (heads @ of_distances).reshape(batch, layer.num_heads, -1).slice((length - 1).column(0), -1, 2)
        found = flat.reshape(batch, layer.num_heads, length, -1).slice(0, length.column(0), 3)
        found = found if part else graph.add("Transpose", found, perm=[0, 1, 3, 2])
        added = found if added is None else added + found
    return added


def _rotated(part: Tensor, positions: RotaryPositions, num_heads: int, width: int) -> Tensor:
    """Queries or keys `[B, S, H]`, rotated by their positions."""
    graph = part.graph
    tables = positions.tables(positions.max_sequence_length, width // num_heads)
    constants = [graph.constant([0]), *(graph.constant(array(table)) for table in tables)]
    return graph.fused("RotaryEmbedding", part, *constants, num_heads=num_heads, interleaved=int(not positions.halves))


class MeasuredProducts(Products):
    """Products in float32 that record the largest number in each column of their inputs.

    Attributes:
        largest: float32 `[K]` of each dense layer's inputs, by the layer's `id`.
    """

    fuses_attention = False

    def __init__(self) -> None:
        self.largest: dict[int, Tensor] = {}

    def product(self, inputs: Tensor, layer: keras.layers.Layer, first: int = 0, end: int | None = None) -> Tensor:
        """`inputs @ kernel`."""
        size = layer.kernel.shape[0]
        found = inputs.graph.add("Abs", inputs).reshape(-1, size).reduced("Max", 0)
        earlier = self.largest.get(id(layer))  # of a shared block
        self.largest[id(layer)] = found if earlier is None else found.maximum(earlier)
        return super().product(inputs, layer, first, end)


class Int8Products(Products):
    """Products of 8 bits, summed as integers: a scale for each row of the inputs and each column of the weights.

    Few columns of an encoder's inputs have numbers many times those of the others, which would set the scale of every
    row. They are multiplied in float32.

    Args:
        largest: the largest number in each column of the inputs of each dense layer, by the layer's `id`.

    References:
        Dettmers et al. 2022, https://arxiv.org/abs/2208.07339, section 3 (vector-wise scales, outliers apart).
    """

    fuses_attention = False

    def __init__(self, largest: Mapping[int, np.ndarray]):
        self._largest = largest

    def product(self, inputs: Tensor, layer: keras.layers.Layer, first: int = 0, end: int | None = None) -> Tensor:
        """`inputs @ kernel`."""
        graph, kernel = inputs.graph, _kernel(layer)[:, first:end]
        largest = self._largest[id(layer)]
        outliers = np.flatnonzero(largest > _OUTLIER * np.median(largest))
        others = np.ones(len(kernel), np.float32)
        others[outliers] = 0
        weights, scales = quantized(kernel * others[:, None])
        rest = inputs * others if outliers.size else inputs
        sizes = graph.add("Abs", rest).reduced("Max", -1, keepdims=True)  # [B, S, 1]
        step, zero = graph.constant(1 / _LARGEST, FLOAT), graph.constant(_ZERO, UINT8)
        # Outliers saturate, and meet weights of 0. A row of zeros gives NaN, and then numbers that meet a size of 0.
        rounded = graph.add("QuantizeLinear", inputs / sizes, step, zero, kind=UINT8)
        operands = graph.constant(weights), step, graph.constant(scales), zero
        product = graph.fused("MatMulIntegerToFloat", rounded, *operands, kind=FLOAT) * sizes
        if outliers.size:
            product = product + inputs.take(outliers, axis=-1) @ kernel[outliers]
        return product


def quantized(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A matrix `[K, N]` with 8 bits per number and a scale per column.

    Returns:
        Numbers, int8 `[K, N]`, and scales, float32 `[N]`. The absolute numbers of each pair of rows, 0 and 1, 2 and 3,
        ..., sum to 128 at most.
    """
    sizes = np.abs(np.pad(kernel, [(0, len(kernel) % 2), (0, 0)]))
    scales = ((sizes[::2] + sizes[1::2]).max(0) / (_LARGEST_PAIR - 1)).astype(np.float32)  # rounding adds 1
    scales[scales == 0] = 1
    return np.rint(kernel / scales).astype(np.int8), scales
