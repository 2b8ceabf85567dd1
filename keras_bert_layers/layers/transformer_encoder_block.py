"""`TransformerEncoderBlock`: one block of a Transformer encoder."""

from __future__ import annotations

import weakref
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.config import check_activation
from keras_bert_layers.layers._dropout import Dropout
from keras_bert_layers.layers._parts import part_of, serialized
from keras_bert_layers.layers.feed_forward import FeedForward
from keras_bert_layers.layers.layer_norm import LayerNorm
from keras_bert_layers.layers.padding_free import PaddingFreeLayer, RealTokens, first_of, with_padding, without_padding
from keras_bert_layers.layers.positions import Positions
from keras_bert_layers.layers.self_attention import SelfAttention


@register
class TransformerEncoderBlock(PaddingFreeLayer):
    """A Transformer encoder block: self-attention and feed-forward, each with a residual connection and a LayerNorm.

    With f the attention, then the feed-forward network:

    - LayerNorm after, as in BERT: `x = LayerNorm(x + dropout(f(x)))`
    - LayerNorm first, as in tensor2tensor, with `normalize_first`: `x = x + dropout(f(LayerNorm(x)))`; a stack of such
      blocks needs one more LayerNorm after the last.

    In TensorFlow's graphs all but the attention scores are computed for the real tokens only; the results are the same.
    `block.padding_free = False` switches this off, for XLA, which needs fixed shapes.

    `block.rematerialize = True` makes training keep only the block's input, and compute the block again for its
    gradients: less memory for a third more time, with equal gradients (Chen et al. 2016, arXiv:1604.06174).

    `block.packed_rows = True` makes the block read rows of several texts: a token attends to its own text only.

    Args:
        num_heads: attention heads; divides the width of the input.
        intermediate_dim: width inside the feed-forward layer.
        activation: function inside the feed-forward layer, one of `config.ACTIVATIONS`.
        dropout: dropout rate of the output of both sub-layers, in [0, 1).
        attention_dropout: dropout rate of the attention probabilities, in [0, 1).
        layer_norm_epsilon: added to the variance in LayerNorm, which computes in float32 under every dtype policy.
        normalize_first: whether LayerNorm comes before each sub-layer.
        normalizes_attention: whether there is the attention's LayerNorm; False only with `normalize_first`.
        causal: whether a position attends only to itself and to positions before it.
        window: as in `SelfAttention`.
        use_bias: whether dense layers and LayerNorms have a bias.
        initializer_range: standard deviation of the initial weights.
        positions: a `Positions` that acts in the attention; None for none.
        feed_forward: a layer from `(..., hidden_dim)` to the same, such as a `GatedFeedForward`; None for a
            `FeedForward` of the block's `intermediate_dim`, `activation` and `use_bias`.
        **kwargs: `name`, `dtype`, `trainable`.

    Call arguments:
        hidden: float `(batch, sequence, hidden_dim)`.
        padding_mask: int or bool `(batch, sequence)`, 1 = real token; None if all are real. With `packed_rows`, int:
            the number of the text that a token belongs to, from 1; 0 = padding.
        first_token_only: whether to compute the output for the first token of each row only.
        return_attention_scores: whether to return the attention probabilities too.

    Returns:
        Float `(batch, sequence, hidden_dim)`, or `(batch, hidden_dim)` with `first_token_only`; with
        `return_attention_scores` a pair of it and the probabilities `(batch, num_heads, queries, sequence)`. The
        output at padding has no meaning.

    Raises:
        ValueError: if an argument is out of range, or `num_heads` does not divide `hidden_dim`.
        TypeError: a part of another type.

    Examples:
        >>> block = TransformerEncoderBlock(num_heads=2, intermediate_dim=12)
        >>> tuple(block(keras.ops.ones((2, 5, 8)), padding_mask=keras.ops.ones((2, 5), "int32")).shape)
        (2, 5, 8)

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3; `transformer_model` in google-research/bert,
        modeling.py. LayerNorm first: Xiong et al. 2020, https://arxiv.org/abs/2002.04745, figure 1.
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        *,
        activation: str = "gelu_erf",
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-12,
        normalize_first: bool = False,
        normalizes_attention: bool = True,
        causal: bool = False,
        window: int | None = None,
        use_bias: bool = True,
        initializer_range: float = 0.02,
        positions: Positions | None = None,
        feed_forward: keras.layers.Layer | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        owner = type(self).__name__
        self.num_heads = checks.positive_integer(owner, "num_heads", num_heads)
        self.intermediate_dim = checks.positive_integer(owner, "intermediate_dim", intermediate_dim)
        self.activation = check_activation(owner, activation)
        self.dropout = checks.fraction(owner, "dropout", dropout)
        self.attention_dropout = checks.fraction(owner, "attention_dropout", attention_dropout)
        self.layer_norm_epsilon = checks.positive_number(owner, "layer_norm_epsilon", layer_norm_epsilon)
        self.normalize_first = checks.boolean(owner, "normalize_first", normalize_first)
        self.normalizes_attention = checks.boolean(owner, "normalizes_attention", normalizes_attention)
        if not (normalizes_attention or normalize_first):
            rule = "be True without `normalize_first`"
            raise ValueError(checks.message(owner, "normalizes_attention", rule, normalizes_attention))
        self.causal = checks.boolean(owner, "causal", causal)
        self.window = checks.optional(checks.positive_integer, owner, "window", window)
        self.use_bias = checks.boolean(owner, "use_bias", use_bias)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)
        self.positions = part_of(owner, "positions", positions, Positions)
        self.feed_forward = part_of(owner, "feed_forward", feed_forward, keras.layers.Layer)
        self._makes_feed_forward = feed_forward is None
        self.rematerialize = False

    def build(self, input_shape: Any) -> None:
        """Creates the two sub-layers and their LayerNorms, as wide as the input."""
        policy = self.dtype_policy
        weights = {"use_bias": self.use_bias, "initializer_range": self.initializer_range, "dtype": policy}
        norm = {"epsilon": self.layer_norm_epsilon, "center": self.use_bias, "dtype": policy}
        self.attention = SelfAttention(
            self.num_heads,
            dropout=self.attention_dropout,
            causal=self.causal,
            window=self.window,
            positions=self.positions,
            name="attention",
            **weights,
        )
        if self._makes_feed_forward:
            self.feed_forward = FeedForward(
                self.intermediate_dim, activation=self.activation, name="feed_forward", **weights
            )
        self.attention_layer_norm = None
        if self.normalizes_attention:
            self.attention_layer_norm = LayerNorm(name="attention_layer_norm", **norm)
        self.feed_forward_layer_norm = LayerNorm(name="feed_forward_layer_norm", **norm)
        self.dropout_layer = Dropout(self.dropout, dtype=policy, name="dropout")
        for layer in (self.attention, self.attention_layer_norm, self.feed_forward, self.feed_forward_layer_norm):
            if layer is not None:
                layer.build(input_shape)

    def call(
        self,
        hidden: Any,
        padding_mask: Any = None,
        *,
        first_token_only: bool = False,
        return_attention_scores: bool = False,
        training: bool | None = None,
    ) -> Any:
        """Transforms the sequence; see the class."""
        real, tokens = without_padding(hidden, padding_mask) if self._skips_padding(padding_mask) else (None, hidden)
        run = self._run_rematerialized if training and self.rematerialize else self._run
        output, *scores = run(
            tokens,
            padding_mask=padding_mask,
            real_tokens=real,
            packed_rows=self.packed_rows,
            first_token_only=first_token_only,
            return_attention_scores=return_attention_scores,
            training=training,
        )
        if real is not None and not first_token_only:
            output = with_padding(real, output)  # [B, S, H] of [T, H]
        return (output, *scores) if return_attention_scores else output

    def _run_rematerialized(self, tokens: Any, **options: Any) -> tuple[Any, ...]:
        """`_run`, computed again for the gradients, with the same dropout; only its input is kept in memory."""
        real = options["real_tokens"]
        num_groups = 1 if real is None else len(real.rows_by_length.groups)
        attention_seeds, seeds = self.attention.dropout_layer.draw(num_groups), self.dropout_layer.draw(2)
        reference = weakref.ref(self)  # TensorFlow keeps `run`; see `freed_with`

        def run(tokens: Any) -> tuple[Any, ...]:
            block: Any = reference()
            with block.attention.dropout_layer.replay(attention_seeds), block.dropout_layer.replay(seeds):
                return block._run(tokens, **options)

        output, *scores = keras.remat(run)(tokens)
        # The gradient of a reshape is one tensor, which TensorFlow's recomputation needs, also where rows are selected.
        return ops.reshape(output, ops.shape(output)), *scores

    def _run(
        self, tokens: Any, *, first_token_only: bool, real_tokens: RealTokens | None, **options: Any
    ) -> tuple[Any, ...]:
        """The output for the tokens, and the attention probabilities with `return_attention_scores`."""
        attended = self.attention(
            self._before(self.attention_layer_norm, tokens),
            real_tokens=real_tokens,
            first_token_only=first_token_only,
            **options,
        )
        attended, *scores = attended if options["return_attention_scores"] else (attended,)
        if first_token_only:
            tokens = first_of(real_tokens, tokens)  # [B, H]
        # Of real tokens, TensorFlow can fuse a sum without broadcasting into the matrix product before it.
        add = ops.add if real_tokens is None else lambda *terms: tf.add_n(terms)
        tokens = self._after(self.attention_layer_norm, add(tokens, self.dropout_layer(attended)))
        transformed = self.feed_forward(self._before(self.feed_forward_layer_norm, tokens))
        return self._after(self.feed_forward_layer_norm, add(tokens, self.dropout_layer(transformed))), *scores

    def _before(self, layer_norm: Any, hidden: Any) -> Any:
        return layer_norm(hidden) if self.normalize_first and layer_norm is not None else hidden

    def _after(self, layer_norm: Any, hidden: Any) -> Any:
        return hidden if self.normalize_first else layer_norm(hidden)

    def compute_output_spec(self, hidden: Any, padding_mask: Any = None, **options: Any) -> Any:
        """Shapes and dtypes of the output and the scores: those of the attention."""
        return self.attention.compute_output_spec(hidden, padding_mask, **options)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = {**super().get_config(), **constructor_arguments(TransformerEncoderBlock, self)}
        feed_forward = None if self._makes_feed_forward else serialized(self.feed_forward)
        return {**config, "positions": serialized(self.positions), "feed_forward": feed_forward}
