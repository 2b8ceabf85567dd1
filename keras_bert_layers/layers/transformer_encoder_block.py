"""`TransformerEncoderBlock`: one block of a Transformer encoder."""

from __future__ import annotations

import weakref
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.checks import constructor_arguments, constructor_names
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Shape, Tensor
from keras_bert_layers.config import check_activation
from keras_bert_layers.layers._dropout import Dropout
from keras_bert_layers.layers._parts import part_of, serialized
from keras_bert_layers.layers.adapters import chosen_adapter, using_adapter
from keras_bert_layers.layers.feed_forward import FeedForward
from keras_bert_layers.layers.layer_norm import LayerNorm
from keras_bert_layers.layers.padding_free import PaddingFreeLayer, RealTokens, first_of, with_padding, without_padding
from keras_bert_layers.layers.positions import Positions
from keras_bert_layers.layers.self_attention import SelfAttention

# The arguments of the attention that a block makes.
_OF_ATTENTION: dict[str, Any] = {"attention_dropout": 0.1, "causal": False, "window": None, "positions": None}

# What every layer takes, and what Keras takes of every layer besides.
_OF_LAYERS = ("name", "dtype", "trainable")
_OF_KERAS = ("autocast", "activity_regularizer", "input_shape", "input_dim")


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

    An `attention` of your own is a subclass of `SelfAttention`, or any layer with the same call:

    - It is called as `attention(hidden, padding_mask, real_tokens=, packed_rows=, first_token_only=,
      return_attention_scores=, training=)`, and returns what `SelfAttention` documents. In TensorFlow's graphs `hidden`
      is `(tokens, hidden_dim)`: `real_tokens.pad(hidden)` is `(batch, sequence, hidden_dim)`, `real_tokens.select` the
      way back, and `real_tokens.first(hidden)` the first tokens.
    - `compute_output_spec` may give the shapes of its outputs without a trace of `call`.
    - `dropout_layer` is what it drops values with: once in a call, or with `real_tokens` once for each of
      `real_tokens.rows_by_length.groups`. It has `draw` and `replay`, as that of `SelfAttention`, by which
      `rematerialize` repeats what was dropped. An attention without randomness needs none.
    - `num_heads`, if it has such an attribute, is that of the block.

    A `feed_forward` or a `convolution` of your own may have such a `dropout_layer` too, which it calls once.

    Args:
        num_heads: attention heads; divides the width of the input.
        intermediate_dim: width inside the feed-forward layer.
        attention: the layer that attends, as above, which knows its heads, dropout, window and positions; None for a
            `SelfAttention` of the block's `num_heads` and `use_bias`, and of the arguments below.
        feed_forward: a layer from `(..., hidden_dim)` to the same, such as a `GatedFeedForward`; None for a
            `FeedForward` of the block's `intermediate_dim`, `activation` and `use_bias`.
        activation: function inside the feed-forward layer, one of `config.ACTIVATIONS`.
        dropout: dropout rate of the output of both sub-layers, in [0, 1).
        layer_norm_epsilon: added to the variance in LayerNorm, which computes in float32 under every dtype policy.
        normalize_first: whether LayerNorm comes before each sub-layer.
        normalizes_attention: whether there is the attention's LayerNorm; False only with `normalize_first`.
        use_bias: whether dense layers and LayerNorms have a bias.
        **kwargs: `attention_dropout` (0.1), the dropout rate of the attention probabilities, in [0, 1); `causal`
            (False), `window` (None) and `positions` (None), as in `SelfAttention`; `initializer_range` (0.02), the
            standard deviation of the initial weights; `convolution` (None), a layer such as a `TokenConvolution`, which
            adds a sum over near tokens to the output; `name`, `dtype`, `trainable`. The first four are of the attention
            that the block makes, and cannot stand beside `attention`.

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
        ValueError: if an argument is out of range or unknown, or `num_heads` does not divide `hidden_dim`; an argument
            of the attention beside `attention`.
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
        attention: keras.layers.Layer | None = None,
        feed_forward: keras.layers.Layer | None = None,
        activation: str = "gelu_erf",
        dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-12,
        normalize_first: bool = False,
        normalizes_attention: bool = True,
        use_bias: bool = True,
        **kwargs: Any,
    ):
        owner = type(self).__name__
        own = constructor_names(TransformerEncoderBlock)
        names = (*own, *_OF_ATTENTION, "initializer_range", "convolution", *_OF_LAYERS)
        checks.known_arguments(owner, {name: kwargs[name] for name in kwargs if name not in _OF_KERAS}, names)
        options = {name: kwargs.pop(name) for name in _OF_ATTENTION if name in kwargs}
        initializer_range, convolution = kwargs.pop("initializer_range", 0.02), kwargs.pop("convolution", None)
        super().__init__(**kwargs)
        self.num_heads = checks.positive_integer(owner, "num_heads", num_heads)
        self.intermediate_dim = checks.positive_integer(owner, "intermediate_dim", intermediate_dim)
        self.activation = check_activation(owner, activation)
        self.dropout = checks.fraction(owner, "dropout", dropout)
        self.layer_norm_epsilon = checks.positive_number(owner, "layer_norm_epsilon", layer_norm_epsilon)
        self.normalize_first = checks.boolean(owner, "normalize_first", normalize_first)
        self.normalizes_attention = checks.boolean(owner, "normalizes_attention", normalizes_attention)
        if not (normalizes_attention or normalize_first):
            rule = "be True without `normalize_first`"
            raise ValueError(checks.message(owner, "normalizes_attention", rule, normalizes_attention))
        self.use_bias = checks.boolean(owner, "use_bias", use_bias)
        self.initializer_range = checks.positive_number(owner, "initializer_range", initializer_range)
        self.attention = part_of(owner, "attention", attention, keras.layers.Layer)
        self._makes_attention = attention is None
        values = _of_made(owner, options) if attention is None else _of_given(owner, options, self.attention, num_heads)
        self.attention_dropout, self.causal = values["attention_dropout"], values["causal"]
        self.window = values["window"]
        self.positions = values["positions"]
        self.feed_forward = part_of(owner, "feed_forward", feed_forward, keras.layers.Layer)
        self._makes_feed_forward = feed_forward is None
        self.convolution = part_of(owner, "convolution", convolution, keras.layers.Layer)
        self.rematerialize = False

    def build(self, input_shape: Shape) -> None:
        """Creates the two sub-layers and their LayerNorms, as wide as the input."""
        policy = self.dtype_policy
        weights = {"use_bias": self.use_bias, "initializer_range": self.initializer_range, "dtype": policy}
        norm = {"epsilon": self.layer_norm_epsilon, "center": self.use_bias, "dtype": policy}
        if self._makes_attention:
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
        norms = self.attention_layer_norm, self.feed_forward_layer_norm
        for layer in (self.attention, norms[0], self.feed_forward, norms[1], self.convolution):
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

    def _run_rematerialized(self, tokens: Tensor, **options: Any) -> tuple[Any, ...]:
        """`_run`, computed again for the gradients, with the same dropout; only its input is kept in memory."""
        real = options["real_tokens"]
        num_groups = 1 if real is None else len(real.rows_by_length.groups)
        attention_seeds, seeds = _dropout_of(self.attention).draw(num_groups), self.dropout_layer.draw(2)
        inner_seeds, near_seeds = (_dropout_of(part).draw(1) for part in (self.feed_forward, self.convolution))
        reference = weakref.ref(self)  # TensorFlow keeps `run`; see `freed_with`

        def run(tokens: Tensor) -> tuple[Any, ...]:
            block: Any = reference()
            attention, inner = _dropout_of(block.attention), _dropout_of(block.feed_forward)
            near = _dropout_of(block.convolution).replay(near_seeds)
            with attention.replay(attention_seeds), inner.replay(inner_seeds), block.dropout_layer.replay(seeds), near:
                return block._run(tokens, **options)

        output, *scores = keras.remat(using_adapter(chosen_adapter())(run))(tokens)
        # The gradient of a reshape is one tensor, which TensorFlow's recomputation needs, also where rows are selected.
        return ops.reshape(output, ops.shape(output)), *scores

    def _run(
        self, tokens: Tensor, *, first_token_only: bool, real_tokens: RealTokens | None, **options: Any
    ) -> tuple[Any, ...]:
        """The output for the tokens, and the attention probabilities with `return_attention_scores`."""
        options |= {"real_tokens": real_tokens, "first_token_only": first_token_only}
        hidden, attended = tokens, self.attention(self._before(self.attention_layer_norm, tokens), **options)
        attended, *scores = attended if options["return_attention_scores"] else (attended,)
        if first_token_only:
            tokens = first_of(real_tokens, tokens)  # [B, H]
        # Of real tokens, TensorFlow can fuse a sum without broadcasting into the matrix product before it.
        add = ops.add if real_tokens is None else lambda *terms: tf.add_n(terms)
        tokens = self._after(self.attention_layer_norm, add(tokens, self.dropout_layer(attended)))
        transformed = self.feed_forward(self._before(self.feed_forward_layer_norm, tokens))
        output = self._after(self.feed_forward_layer_norm, add(tokens, self.dropout_layer(transformed)))
        if self.convolution is not None:
            del options["return_attention_scores"], options["training"]
            output = self.convolution(hidden, output, **options)
        return output, *scores

    def _before(self, layer_norm: keras.layers.Layer | None, hidden: Tensor) -> Any:
        return layer_norm(hidden) if self.normalize_first and layer_norm is not None else hidden

    def _after(self, layer_norm: Any, hidden: Tensor) -> Any:
        return hidden if self.normalize_first else layer_norm(hidden)

    def compute_output_spec(self, hidden: Tensor, padding_mask: Tensor | None = None, **options: Any) -> Any:
        """Shapes and dtypes of the output and the scores: those of the attention."""
        return self.attention.compute_output_spec(hidden, padding_mask, **options)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument; those of the attention that the block makes only if it makes one."""
        made = {**{name: getattr(self, name) for name in _OF_ATTENTION}, "positions": serialized(self.positions)}
        return {
            **super().get_config(),
            **constructor_arguments(TransformerEncoderBlock, self),
            **(made if self._makes_attention else {}),
            "initializer_range": self.initializer_range,
            "attention": None if self._makes_attention else serialized(self.attention),
            "feed_forward": None if self._makes_feed_forward else serialized(self.feed_forward),
            "convolution": serialized(self.convolution),
        }


def _of_made(owner: str, options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the attention that a block makes, checked."""
    values = {**_OF_ATTENTION, **options}
    return {
        "attention_dropout": checks.fraction(owner, "attention_dropout", values["attention_dropout"]),
        "causal": checks.boolean(owner, "causal", values["causal"]),
        "window": checks.optional(checks.positive_integer, owner, "window", values["window"]),
        "positions": part_of(owner, "positions", values["positions"], Positions),
    }


def _of_given(owner: str, options: dict[str, Any], attention: Any, num_heads: int) -> dict[str, Any]:
    """The same of an attention that is given, as far as it has them; none may be given beside it."""
    for name, value in options.items():
        raise ValueError(checks.message(owner, name, "be left to the `attention` that is given", value))
    if getattr(attention, "num_heads", num_heads) != num_heads:
        rule = f"be that of `attention` ({attention.num_heads})"
        raise ValueError(checks.message(owner, "num_heads", rule, num_heads))
    names = {"attention_dropout": "dropout", "causal": "causal", "window": "window", "positions": "positions"}
    return {ours: getattr(attention, theirs, None) for ours, theirs in names.items()}


def _dropout_of(part: keras.layers.Layer | None) -> Dropout:
    """The dropout of an attention or a feed-forward layer; one that drops nothing for a part without."""
    return getattr(part, "dropout_layer", None) or Dropout(0.0)
