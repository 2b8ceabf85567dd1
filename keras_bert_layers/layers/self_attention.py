"""`SelfAttention`: multi-head self-attention."""

from __future__ import annotations

import functools
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._dropout import Dropout
from keras_bert_layers.layers._parts import part_of, serialized
from keras_bert_layers.layers.dense import dense
from keras_bert_layers.layers.local_blocks import Blocks, with_zeros
from keras_bert_layers.layers.padding_free import RealTokens, RowGroups, first_of
from keras_bert_layers.layers.positions import Positions

# Where `keras.ops.dot_product_attention` is a fused kernel. On TensorFlow it is the same products as below.
_FUSING_BACKENDS = ("jax", "torch")

# Finite, so that a row of only padding gives a mean and not NaN. It is so large that adding a score to it does not
# change it in float32, so that no probability depends on the content of padding.
_MASKED = -1e30

# Where `reads_long_rows` is set, one row at a time has its scores computed if they are more than these; of a row longer
# than the second, one head and so many queries. Larger tensors get new memory from the system for each operation.
_MANY_SCORES, LONG_ROW = 2**22, 512


@register
class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention, with scaled dot products.

    `softmax(Q K^T / sqrt(D) + mask) V`, with one merged product for query, key and value, and an output projection.

    With a `window`, a token attends to near ones only. The sequence is cut into blocks of half a window, each of which
    reads itself and the block on either side, so that time and memory grow with the length, and not with its square.

    With `attention.reads_long_rows = True`, memory grows so without a window too, where TensorFlow does not train.

    Axes: B batch, S sequence, Q queries (S, or 1), T real tokens, H hidden, N heads, D head (H = N * D); F blocks of C
    queries and K keys.

    Args:
        num_heads: number of heads; divides the width of the input.
        dropout: dropout rate of the attention probabilities, in [0, 1).
        causal: whether a position attends only to itself and to positions before it.
        window: width in tokens of what a position attends to, at a distance of at most `window // 2`; None for all.
        use_bias: whether the projections have biases.
        initializer_range: standard deviation of the initial weights.
        positions: a `Positions` that rotates queries and keys, or adds to the scores; None for neither.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(batch, sequence, hidden_dim)`; with `real_tokens`, `(tokens, hidden_dim)`.
        padding_mask: int or bool `(batch, sequence)`, 1 = real token, 0 = padding that no position attends to; None if
            all are real.
        real_tokens: the positions of the tokens of `hidden` in the batch; None if `hidden` is padded.
        packed_rows: whether a row holds several texts: `padding_mask`, an int, is then the number of each token's text,
            and a token attends to tokens of its own number only.
        first_token_only: whether to compute the output for the first token of each row only.
        return_attention_scores: whether to return the probabilities too.
        training: whether dropout is active.

    Returns:
        Float, of the shape of `hidden`, or `(batch, hidden_dim)` with `first_token_only`; with
        `return_attention_scores` a pair of it and the probabilities (before dropout), `(batch, num_heads, queries,
        sequence)`: `[b, n, i, j]` is how much i attends to j; with a window too, which then saves nothing. The softmax
        is computed in float32 under every dtype policy. In a row of only padding, every position attends to all
        positions equally; with a window, the output there has no meaning.

    Raises:
        ValueError: if an argument is out of range, or `num_heads` does not divide `hidden_dim`.

    Examples:
        >>> hidden = keras.ops.ones((2, 5, 8))
        >>> output, scores = SelfAttention(num_heads=2)(hidden, return_attention_scores=True)
        >>> tuple(output.shape), tuple(scores.shape)
        ((2, 5, 8), (2, 2, 5, 5))

    References:
        Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.2; `attention_layer` in google-research/bert,
        modeling.py. The window: Beltagy et al. 2020, https://arxiv.org/abs/2004.05150, section 3.1.
    """

    def __init__(
        self,
        num_heads: int,
        *,
        dropout: float = 0.0,
        causal: bool = False,
        window: int | None = None,
        use_bias: bool = True,
        initializer_range: float = 0.02,
        positions: Positions | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.num_heads = checks.positive_integer(owner, "num_heads", num_heads)
        self.dropout = checks.fraction(owner, "dropout", dropout)
        self.causal = checks.boolean(owner, "causal", causal)
        self.window = checks.optional(checks.positive_integer, owner, "window", window)
        self.use_bias = checks.boolean(owner, "use_bias", use_bias)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)
        self.positions = part_of(owner, "positions", positions, Positions)
        self.reads_long_rows = False

    def build(self, input_shape: Any) -> None:
        """Creates the two projections, as wide as the input."""
        owner = type(self).__name__
        if len(input_shape) != 3:
            rule = "be (batch, sequence, hidden_dim)"
            raise ValueError(checks.message(owner, "hidden.shape", rule, tuple(input_shape)))
        width = input_shape[-1]
        checks.divides(owner, "num_heads", self.num_heads, "hidden_dim", width)
        options: dict[str, Any] = {"use_bias": self.use_bias, "dtype": self.dtype_policy}
        options["initializer_range"] = self.initializer_range
        self.query_key_value = dense(3 * width, name="query_key_value", **options)
        self.output_projection = dense(width, name="output", **options)
        self.dropout_layer = Dropout(self.dropout, dtype=self.dtype_policy, name="dropout")
        self.query_key_value.build(input_shape)
        self.output_projection.build(input_shape)
        if self.positions is not None and not self.positions.built:
            self.positions.build((None, self.num_heads, None, width // self.num_heads))

    def call(
        self,
        hidden: Any,
        padding_mask: Any = None,
        *,
        real_tokens: RealTokens | None = None,
        packed_rows: bool = False,
        first_token_only: bool = False,
        return_attention_scores: bool = False,
        training: bool | None = None,
    ) -> Any:
        """Attends; see the class."""
        query, merged = self._project(hidden, real_tokens, first_token_only)
        options = {"packed_rows": packed_rows, "in_blocks": self.window is not None and not return_attention_scores}
        if self.reads_long_rows and keras.backend.backend() == "tensorflow":
            options["in_turns"] = not (first_token_only or return_attention_scores or training)
        if real_tokens is None:
            # One query is too little work for a kernel, and JAX's has no gradient for it.
            may_fuse = not (first_token_only or return_attention_scores or (training and self.dropout))
            fused = may_fuse and keras.backend.backend() in _FUSING_BACKENDS
            context, scores = self._attend(query, merged, padding_mask, fused=fused, **options)
            context = context if query is None else context[:, 0]
        else:
            rows = real_tokens.all_rows() if return_attention_scores else real_tokens.rows_by_length
            context, scores = self._attend_in(rows, query, merged, **options)
        output = self.output_projection(context)
        return (output, scores) if return_attention_scores else output

    def _project(self, hidden: Any, real: RealTokens | None, first_token_only: bool) -> tuple[Any, Any]:
        """None, and query, key and value of all tokens; or the first tokens' query, and key and value of all."""
        if not first_token_only:
            return None, self.query_key_value(hidden)  # [B, S, 3 H] or [T, 3 H]
        width = hidden.shape[-1]
        if self.query_key_value.quantization_mode is not None:  # only the layer can read its kernel
            merged = self.query_key_value(hidden)
            return first_of(real, merged[..., :width]), merged[..., width:]
        kernel, bias = self.query_key_value.kernel, self.query_key_value.bias
        query = ops.matmul(first_of(real, hidden), kernel[:, :width])  # [B, H]
        merged = ops.matmul(hidden, kernel[:, width:])  # [B, S, 2 H] or [T, 2 H]
        return (query, merged) if bias is None else (query + bias[:width], merged + bias[width:])

    def _attend_in(self, rows: RowGroups, query: Any, merged: Any, **options: bool) -> tuple[Any, Any]:
        """The context of the real tokens `[T, H]`, or of the first tokens `[B, H]`; and the first group's scores."""
        contexts, scores = [], []
        for group in rows.groups:
            first = None if query is None else group.pick(query)
            padded = group.pad(merged)
            context, probabilities = self._attend(first, padded, group.padding_mask, **options)
            contexts.append(context if query is None else context[:, 0])
            scores.append(probabilities)
        return (rows.select if query is None else rows.join)(contexts), scores[0]

    def _attend(
        self,
        query: Any,
        merged: Any,
        padding_mask: Any,
        *,
        packed_rows: bool,
        in_blocks: bool,
        in_turns: bool = False,
        fused: bool = False,
    ) -> tuple[Any, Any]:
        """The context `[B, Q, H]`, and the scores `[B, N, Q, S]`, or None where they are not computed so."""
        blocks = None if query is not None or not in_blocks else Blocks.of(ops.shape(merged)[1], self._reach)
        parts = self._split_heads(merged, 3 if query is None else 2)
        query, key, value = parts if query is None else (*self._split_heads(query[:, None], 1), *parts)
        if self.positions is not None:
            query, key = self.positions.rotated(query), self.positions.rotated(key)
        look = self._visible if blocks is None else functools.partial(self._visible_in_blocks, blocks)
        visible, bias = look(query, key, padding_mask, packed_rows)
        attention, scores = ([query, key, value], visible, bias, blocks), None
        if fused and bias is None and blocks is None:
            context = _attend_by_kernel(query, key, value, visible)
        elif in_turns and (blocks or (bias is None and (visible is None or visible.shape[2] == 1))):
            turns, at_once = (functools.partial(run, *attention) for run in (self._in_turns, self._at_once))
            batch, num_heads, length, _ = ops.shape(query)
            are_many = _are_many(batch, num_heads, length)
            context = (
                (turns if are_many else at_once)() if isinstance(are_many, bool) else ops.cond(are_many, turns, at_once)
            )
        elif blocks:
            context = self._at_once(*attention)
        else:
            context, scores = self._attend_by_products(query, key, value, visible, bias)
            context = _swap_heads_and_sequence(context)  # [B, Q, N, D]
        batch, num_queries = ops.shape(context)[:2]
        return ops.reshape(context, (batch, num_queries, self.num_heads * query.shape[-1])), scores

    def _split_heads(self, merged: Any, num_parts: int) -> list[Any]:
        """Splits `[B, S, parts * H]` into parts `[B, N, S, D]`, with one copy."""
        batch, length, width = ops.shape(merged)
        head_dim = width // num_parts // self.num_heads
        parts = ops.reshape(merged, (batch, length, num_parts, self.num_heads, head_dim))
        return ops.unstack(ops.transpose(parts, (2, 0, 3, 1, 4)))

    def _visible(self, query: Any, key: Any, padding_mask: Any, packed_rows: bool) -> tuple[Any, Any]:
        """Bool `[B or 1, 1, Q or 1, S]`, True if query i may attend to key j, or None; and what is added to scores."""
        visible = None
        if padding_mask is not None:
            batch, length = ops.shape(padding_mask)
            # The explicit shape fixes the rank for TensorFlow, even if the caller left it open, so that it fuses the
            # products.
            if packed_rows:
                own_text = ops.reshape(padding_mask[:, : query.shape[2]], (batch, 1, -1, 1))
                visible = ops.equal(own_text, ops.reshape(padding_mask, (batch, 1, 1, length)))  # [B, 1, Q, S]
            else:
                visible = ops.reshape(ops.cast(padding_mask, "bool"), (batch, 1, 1, length))  # [B, 1, 1, S]
        if self.causal or self.window is not None:
            near = self._near(ops.shape(query)[2], ops.shape(key)[2])[None, None]  # [1, 1, Q, S]
            visible = near if visible is None else ops.logical_and(visible, near)  # [B, 1, Q, S]
        bias = None if self.positions is None else self.positions.bias(ops.shape(query)[2], ops.shape(key)[2])
        return visible, bias  # [N, Q, S]

    @property
    def _reach(self) -> int:
        """The largest distance that a window allows."""
        return (self.window or 0) // 2

    def _near(self, num_queries: Any, num_keys: Any, first_key: Any = 0) -> Any:
        """Bool `[queries, keys]`, True where position and window allow it; `first_key` is the first key's position."""
        distances = ops.arange(num_keys)[None, :] + first_key - ops.arange(num_queries)[:, None]
        near = distances <= (0 if self.causal else self._reach)
        return near if self.window is None else ops.logical_and(near, distances >= -self._reach)

    def _visible_in_blocks(
        self, blocks: Blocks, query: Any, key: Any, padding_mask: Any, packed_rows: bool
    ) -> tuple[Any, Any]:
        """The same in blocks, `[B, 1, F, C, K]` and `[N, 1, C, K]`."""
        batch, _, length, _ = ops.shape(query)
        numbers = ops.ones((batch, length), "int32") if padding_mask is None else ops.cast(padding_mask, "int32")
        numbers = ops.reshape(numbers, (batch, 1, length, 1))
        of_keys = ops.swapaxes(blocks.with_margins(numbers), -1, -2)  # [B, 1, F, 1, K]
        visible = ops.equal(blocks.cut(numbers), of_keys) if packed_rows else ops.cast(of_keys, "bool")
        num_keys = blocks.size + 2 * blocks.margin
        visible = ops.logical_and(visible, self._near(blocks.size, num_keys, -blocks.margin))
        bias = None if self.positions is None else self.positions.bias(blocks.size + blocks.margin, num_keys)
        return visible, None if bias is None else bias[:, None, blocks.margin :]

    def _at_once(self, parts: list[Any], visible: Any, bias: Any, blocks: Blocks | None) -> Any:
        """The context `[B, S, N, D]`, of query, key and value `[B, N, S, D]`."""
        query, key, value = parts
        batch, num_heads, length, width = ops.shape(query)
        if blocks:
            query, key, value = blocks.cut(query), blocks.with_margins(key), blocks.with_margins(value)
        context, _ = self._attend_by_products(query, key, value, visible, bias)  # [B, N, F, C, D] in blocks
        context = ops.reshape(context, (batch, num_heads, -1, width)) if blocks else context
        return _swap_heads_and_sequence(context[:, :, :length])

    def _in_turns(self, parts: list[Any], visible: Any, bias: Any, blocks: Blocks | None) -> Any:
        """The same, of one row after the other, or of one head of a long one, so that few scores are in memory."""
        batch, num_heads, length, width = ops.shape(parts[0])
        is_short = length <= LONG_ROW
        heads = ops.where(is_short, num_heads, 1)  # of a turn
        groups, size = num_heads // heads, ops.where(is_short, length, LONG_ROW)
        queries, keys, values = (ops.reshape(part, (batch * groups, heads, length, width)) for part in parts)
        count = 1 if blocks else (length + size - 1) // size
        if blocks:
            queries = blocks.cut(queries)
        else:
            queries = with_zeros(queries, 0, count * size - length)
            queries = ops.reshape(queries, (batch * groups * count, heads, size, width))

        def attend(turn: Any) -> Any:
            row = turn // count
            key, value = keys[row], values[row]  # [heads, S, D]
            if blocks:
                key, value = blocks.with_margins(key), blocks.with_margins(value)
            seen = None if visible is None else visible[row // groups]
            added = None if bias is None else bias[row % groups * heads :][:heads]
            return self._attend_by_products(queries[turn], key, value, seen, added)[0]

        turns = tf.range(batch * groups * count)
        spec = tf.TensorSpec([None] * (3 if blocks else 2) + [width], queries.dtype)
        context = tf.map_fn(attend, turns, fn_output_signature=spec, parallel_iterations=2)
        context = ops.reshape(context, (batch, num_heads, -1, width))[:, :, :length]
        return _swap_heads_and_sequence(context)

    def _attend_by_products(self, query: Any, key: Any, value: Any, visible: Any, bias: Any) -> tuple[Any, Any]:
        """The context `[B, N, Q, D]` and the scores `[B, N, Q, S]`; with more axes between for both, in blocks."""
        logits = ops.matmul(query, ops.swapaxes(key, -1, -2))  # [B, N, Q, S]
        wide = keras.backend.result_type(logits.dtype, "float32")
        if self.compute_dtype == "float16":
            logits = ops.cast(logits, wide)  # float16 cannot represent _MASKED
        # In this order TensorFlow fuses product, scale and mask.
        logits *= query.shape[-1] ** -0.5
        if bias is not None:
            logits += ops.cast(bias, logits.dtype)
        if visible is not None:
            logits += ops.where(visible, ops.cast(0, logits.dtype), ops.cast(_MASKED, logits.dtype))
        logits = ops.cast(logits, wide)
        # Keras warns about a softmax over one value, which is correct for a sequence of one token.
        scores = ops.ones_like(logits) if logits.shape[-1] == 1 else ops.softmax(logits, axis=-1)
        scores = ops.cast(scores, self.compute_dtype)
        return ops.matmul(self.dropout_layer(scores), value), scores

    def compute_output_spec(
        self,
        hidden: Any,
        padding_mask: Any = None,
        *,
        first_token_only: bool = False,
        return_attention_scores: bool = False,
        **options: Any,
    ) -> Any:
        """Shapes and dtypes of the output and the scores."""
        batch, length, width = hidden.shape
        shape = (batch, width) if first_token_only else hidden.shape
        scores_shape = (batch, self.num_heads, 1 if first_token_only else length, length)
        output, scores = (keras.KerasTensor(one, dtype=self.compute_dtype) for one in (shape, scores_shape))
        return (output, scores) if return_attention_scores else output

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = {**super().get_config(), **constructor_arguments(SelfAttention, self)}
        return {**config, "positions": serialized(self.positions)}


def _are_many(batch: Any, num_heads: int, length: Any) -> Any:
    """Whether there are more scores than `_MANY_SCORES`; their number itself may be too large for int32."""
    return batch * length > _MANY_SCORES // (num_heads * length + 1)


def _swap_heads_and_sequence(part: Any) -> Any:
    return ops.transpose(part, (0, 2, 1, 3))


def _attend_by_kernel(query: Any, key: Any, value: Any, visible: Any) -> Any:
    """The context `[B, S, N, D]`, of parts `[B, N, S, D]`, by a fused kernel where there is one."""
    flash, length = None, ops.shape(query)[2]
    if visible is not None and keras.backend.backend() == "jax":
        # cuDNN's kernel takes no mask that broadcasts over the queries (https://github.com/jax-ml/jax/issues/28974).
        # Keras would catch JAX's error, and continue without the kernel.
        visible = ops.broadcast_to(visible, (ops.shape(visible)[0], 1, length, length))
        # With a mask, cuDNN has no gradient for an odd length. On TPU, Keras 3.15 passes the mask of the batch's first
        # row to its flash kernel for all rows.
        if length % 2 or keras.distribution.list_devices()[0].startswith("tpu"):
            flash = False
    parts = [_swap_heads_and_sequence(part) for part in (query, key, value)]
    return ops.dot_product_attention(*parts, mask=visible, flash_attention=flash)
