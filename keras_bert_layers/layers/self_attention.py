"""`SelfAttention`: multi-head self-attention."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import LayerOptions, Tensor
from keras_bert_layers.layers._dropout import Dropout
from keras_bert_layers.layers._parts import part_of, serialized
from keras_bert_layers.layers.attention_kernels import (
    FUSING_BACKENDS,
    FullScores,
    FusedKernel,
    InTurns,
    Kernel,
    LocalBlocks,
)
from keras_bert_layers.layers.attention_mask import AttentionMask
from keras_bert_layers.layers.dense import dense
from keras_bert_layers.layers.local_blocks import Blocks
from keras_bert_layers.layers.padding_free import RealTokens, RowGroups, first_of
from keras_bert_layers.layers.positions import Positions
from keras_bert_layers.layers.products import product

# Finite, so that a row of only padding gives a mean and not NaN. It is so large that adding a score to it does not
# change it in float32, so that no probability depends on the content of padding.
_MASKED = -1e30


class _Call(NamedTuple):
    """What a call asks for, by which its algorithm is chosen.

    Args:
        packed_rows: whether a row holds several texts.
        needs_scores: whether it needs all scores in one tensor: to return them, or as they are those of one query only,
            which is too little work for a kernel (and JAX's kernel has no gradient for one query).
        is_training: whether dropout is active and gradients may follow.
        is_padded: whether the rows are those of the padded batch, and not groups of real tokens.
    """

    packed_rows: bool
    needs_scores: bool
    is_training: bool
    is_padded: bool


@register
class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention, with scaled dot products.

    `softmax(Q K^T / sqrt(D) + mask) V`, with one merged product for query, key and value, and an output projection.

    With a `window`, a token attends to near tokens only. The sequence is cut into blocks of half a window. Each block
    attends to itself and to the block on either side, so that time and memory grow linearly with the length.

    With `attention.reads_long_rows = True`, memory grows linearly without a window too: on TensorFlow, outside of
    training, few scores at a time are in memory.

    A subclass may override `scores`, for an attention with other scores. It then computes all scores in one tensor,
    with a window or a long row too.

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
        sequence)`: `[b, n, i, j]` is how much i attends to j. A window then saves no time. The softmax is computed in
        float32 under every dtype policy. In a row of only padding, every position attends to all
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
        **kwargs: Unpack[LayerOptions],
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
        hidden: Tensor,
        padding_mask: Any = None,
        *,
        real_tokens: RealTokens | None = None,
        packed_rows: bool = False,
        first_token_only: bool = False,
        return_attention_scores: bool = False,
        training: bool | None = None,
    ) -> Any:
        """Attends; see the class."""
        needs_scores = first_token_only or return_attention_scores
        call = _Call(packed_rows, needs_scores, is_training=bool(training), is_padded=real_tokens is None)
        query, merged = self._project(hidden, real_tokens, first_token_only)
        if real_tokens is None:
            context, scores = self._attend(query, merged, padding_mask, call)
        else:
            rows = real_tokens.all_rows() if return_attention_scores else real_tokens.rows_by_length
            context, scores = self._attend_in(rows, query, merged, call)
        output = self.output_projection(context)
        return (output, scores) if return_attention_scores else output

    def _project(self, hidden: Tensor, real: RealTokens | None, first_token_only: bool) -> tuple[Any, Any]:
        """None, and query, key and value of all tokens; or the first tokens' query, and key and value of all."""
        if not first_token_only:
            return None, self.query_key_value(hidden)  # [B, S, 3 H] or [T, 3 H]
        width = hidden.shape[-1]
        layer: Any = self.query_key_value
        if layer.quantization_mode is not None or hasattr(layer, "banks"):  # only the layer knows all of its kernel
            merged = self.query_key_value(hidden)
            return first_of(real, merged[..., :width]), merged[..., width:]
        kernel, bias = self.query_key_value.kernel, self.query_key_value.bias
        of_query, of_rest = (None, None) if bias is None else (bias[:width], bias[width:])
        query = product(first_of(real, hidden), kernel[:, :width], of_query)  # [B, H]
        return query, product(hidden, kernel[:, width:], of_rest)  # and [B, S, 2 H] or [T, 2 H]

    def _attend_in(self, rows: RowGroups, query: Tensor, merged: Tensor, call: _Call) -> tuple[Any, Any]:
        """The context of the real tokens `[T, H]`, or of the first tokens `[B, H]`; and the first group's scores."""
        contexts, scores = [], []
        for group in rows.groups:
            first = None if query is None else group.pick(query)
            context, probabilities = self._attend(first, group.pad(merged), group.padding_mask, call)
            contexts.append(context)
            scores.append(probabilities)
        return (rows.select if query is None else rows.join)(contexts), scores[0]

    def _attend(self, first: Tensor, merged: Tensor, padding_mask: Tensor, call: _Call) -> tuple[Any, Any]:
        """The context `[B, S, H]`, or `[B, H]` for the query of the `first` tokens; and the scores, or None."""
        parts = self._split_heads(merged, 3 if first is None else 2)
        query, key, value = parts if first is None else (*self._split_heads(first[:, None], 1), *parts)
        if self.positions is not None:
            query, key = self.positions.rotated(query), self.positions.rotated(key)
        context, scores = self._kernel(query, key, padding_mask, call).attend(query, key, value)  # [B, Q, N, D]
        batch, num_queries = ops.shape(context)[:2]
        context = ops.reshape(context, (batch, num_queries, self.num_heads * query.shape[-1]))
        return context if first is None else context[:, 0], scores

    def _split_heads(self, merged: Tensor, num_parts: int) -> list[Any]:
        """Splits `[B, S, parts * H]` into parts `[B, N, S, D]`, with one copy."""
        batch, length, width = ops.shape(merged)
        head_dim = width // num_parts // self.num_heads
        parts = ops.reshape(merged, (batch, length, num_parts, self.num_heads, head_dim))
        return ops.unstack(ops.transpose(parts, (2, 0, 3, 1, 4)))

    def _kernel(self, query: Tensor, key: Tensor, padding_mask: Tensor, call: _Call) -> Kernel:
        """The algorithm for a call; here, and only here, it is chosen."""
        mask = AttentionMask(padding_mask, call.packed_rows, self.causal, self.window, self.positions)
        needs_scores = call.needs_scores or type(self).scores is not SelfAttention.scores
        takes_turns = self._takes_turns(call)
        blocks = None if needs_scores or self.window is None else Blocks.of(ops.shape(key)[2], mask.reach)
        if blocks is not None:
            local = LocalBlocks(self._weighted, blocks, *mask.in_blocks(blocks, query))
            return InTurns(local) if takes_turns else local
        full = FullScores(self._weighted, *mask.of_all(query, key))
        if needs_scores or full.bias is not None:
            return full
        if keras.backend.backend() in FUSING_BACKENDS and call.is_padded and not (call.is_training and self.dropout):
            return FusedKernel(full.visible)
        return InTurns(full) if takes_turns and full.is_same_for_all_queries else full

    def _takes_turns(self, call: _Call) -> bool:
        """Whether few scores at a time may be in memory."""
        return keras.backend.backend() == "tensorflow" and self.reads_long_rows and not call.is_training

    def scores(self, query: Tensor, key: Tensor, bias: Tensor | None = None) -> Any:
        """The scores of queries and keys before mask and softmax: `Q K^T / sqrt(D)`, and what positions add to it.

        A subclass may override it for scores of its own. All scores are then computed in one tensor.

        Args:
            query: `[B, N, Q, D]`, of the positions 0, 1, 2, ...; Q is S, or 1.
            key: `[B, N, S, D]`, of the same positions.
            bias: what `positions` add, `[N, Q, S]`, or None.

        Returns:
            Float `[B, N, Q, S]`.
        """
        products = ops.matmul(query, ops.swapaxes(key, -1, -2))  # in `LocalBlocks`, [B, N, F, C, K]
        if self.compute_dtype == "float16":
            products = ops.cast(products, "float32")
        # In this order TensorFlow fuses product, scale and mask.
        products *= query.shape[-1] ** -0.5
        return products if bias is None else products + ops.cast(bias, products.dtype)

    def _weighted(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor, bias: Tensor) -> tuple[Any, Any]:
        """`softmax(scores + mask) V`: the context `[B, N, Q, D]` and the probabilities `[B, N, Q, S]`."""
        logits = self.scores(query, key, bias)
        wide = keras.backend.result_type(logits.dtype, "float32")
        if self.compute_dtype == "float16":
            logits = ops.cast(logits, wide)  # float16 cannot represent _MASKED
        if visible is not None:
            logits += ops.where(visible, ops.cast(0, logits.dtype), ops.cast(_MASKED, logits.dtype))
        logits = ops.cast(logits, wide)
        # Keras warns about a softmax over one value, which is correct for a sequence of one token.
        scores = ops.ones_like(logits) if logits.shape[-1] == 1 else ops.softmax(logits, axis=-1)
        scores = ops.cast(scores, self.compute_dtype)
        return ops.matmul(self.dropout_layer(scores), value), scores

    def compute_output_spec(
        self,
        hidden: Tensor,
        padding_mask: Tensor | None = None,
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
