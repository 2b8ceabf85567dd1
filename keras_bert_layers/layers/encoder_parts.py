"""`EncoderParts`: the parts of an encoder that differ from BERT's, such as positions and feed-forward layers."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers.layers._parts import part_of, serialized
from keras_bert_layers.layers.positions import Positions

_BARE = "normalizes_first_attention"


@register
@dataclasses.dataclass(frozen=True)
class LocalAttention:
    """The blocks of an encoder that attend only to near tokens, at a cost that grows with the window.

    Args:
        window: its width in tokens: a token attends to those at a distance of at most `window // 2`.
        global_every: every how many blocks one attends to all tokens, beginning with the first.
        positions: how local blocks know the order of tokens, in place of `EncoderParts.positions`; None for the same.

    Raises:
        TypeError: `positions` are not `Positions`.
        ValueError: an argument out of range.

    Examples:
        >>> local = LocalAttention(128)
        >>> [local.is_local(index) for index in range(5)]
        [False, True, True, False, True]

    References:
        Beltagy et al. 2020, https://arxiv.org/abs/2004.05150; Warner et al. 2024, https://arxiv.org/abs/2412.13663.
    """

    window: int
    global_every: int = dataclasses.field(default=3, kw_only=True)
    positions: Positions | None = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        owner = type(self).__name__
        checks.positive_integer(owner, "window", self.window)
        checks.positive_integer(owner, "global_every", self.global_every)
        object.__setattr__(self, "positions", part_of(owner, "positions", self.positions, Positions))

    def is_local(self, index: int) -> bool:
        """Whether the block of this index is one of them."""
        return index % self.global_every > 0

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = {"window": self.window, "global_every": self.global_every}
        return {**config, "positions": serialized(self.positions)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LocalAttention:
        """The attention of a `get_config` dictionary."""
        return cls(**config)


@register
@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderParts:
    """The parts of an encoder that differ from BERT's, in any combination; `BertBackbone(config, parts=...)`.

    The layers given are patterns: an encoder makes new ones of their configs, so that two encoders share no weights.

    Args:
        positions: how the encoder knows the order of its tokens, a `Positions` such as `RotaryPositions()`; None for
            BERT's trained position embedding.
        feed_forward: the layer from `(..., hidden_dim)` to the same in each block, such as `GatedFeedForward(1024)`;
            None for a `FeedForward` of the config's `intermediate_dim` and `activation`.
        normalize_first: whether LayerNorm comes before each sub-layer; one more then follows the last block.
        causal: whether a token attends only to itself and to tokens before it, as in a left-to-right language model.
            `"pooled_output"`, of the first token, then sees that token alone.
        use_bias: whether dense layers and LayerNorms have biases, also those of the pooler and of heads before the last
            layer.
        normalizes_first_attention: with `normalize_first`, whether the first block has a LayerNorm before its
            attention; without it, what the embedding has normalized is not normalized again, as in ModernBERT.
        local_attention: the blocks that attend only to near tokens; None for none.
        normalizes_heads: whether the pooler, and a layer of their own before the heads of token classification and
            question answering, is a `HeadTransform`, as in ModernBERT.
        pooling: what the pooler reads: "first", the first token; "mean", the mean of a row's tokens.
        attention: the attention of each block, a subclass of `SelfAttention` or another layer that a
            `TransformerEncoderBlock` takes; None for a `SelfAttention` of the config's heads and dropout. It gets the
            encoder's `positions`, `causal` and local window, where these are set, as its arguments `positions`,
            `causal` and `window`, and must leave them at their defaults.
        convolution: a layer such as `TokenConvolution(3)`, which adds a sum over near tokens to the output of the first
            block, as in DeBERTa-v2-xlarge; None for none.
        projects_first: whether an embedding that is narrower than the hidden states is projected before its LayerNorm,
            without a bias, as in DeBERTa; if not, after it.
        shares_block: whether one block, `encoder_block_0`, is called for all layers, as in ALBERT.

    Raises:
        TypeError: a part of another type.
        ValueError: an unknown pooling; an attention that does not take what the other parts give it; a shared block
            beside parts that make blocks differ.

    Examples:
        >>> from keras_bert_layers import BertBackbone, BertConfig
        >>> from keras_bert_layers.layers import GatedFeedForward, RotaryPositions
        >>> parts = EncoderParts(
        ...     positions=RotaryPositions(), feed_forward=GatedFeedForward(10, activation="silu"), normalize_first=True
        ... )
        >>> config = BertConfig(vocabulary_size=99, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=12)
        >>> BertBackbone(config, parts=parts).get_layer("encoder_block_1").feed_forward.intermediate_dim
        10
    """

    positions: Positions | None = None
    feed_forward: keras.layers.Layer | None = None
    normalize_first: bool = False
    causal: bool = False
    use_bias: bool = True
    normalizes_first_attention: bool = True
    local_attention: LocalAttention | None = None
    normalizes_heads: bool = False
    pooling: str = "first"
    attention: keras.layers.Layer | None = None
    convolution: keras.layers.Layer | None = None
    projects_first: bool = False
    shares_block: bool = False

    def __post_init__(self) -> None:
        owner = type(self).__name__
        kinds = {"positions": Positions, "local_attention": LocalAttention}
        layers = dict.fromkeys(("feed_forward", "attention", "convolution"), keras.layers.Layer)
        for name, kind in {**kinds, **layers}.items():
            object.__setattr__(self, name, part_of(owner, name, getattr(self, name), kind))
        flags = ("normalize_first", "causal", "use_bias", "normalizes_heads", "projects_first", "shares_block", _BARE)
        for name in flags:
            checks.boolean(owner, name, getattr(self, name))
        others = self.local_attention, self.convolution
        if self.shares_block and (others != (None, None) or not self.normalizes_first_attention):
            rule = f"be False beside `local_attention`, `convolution` and `{_BARE}=False`, which make blocks differ"
            raise ValueError(checks.message(owner, "shares_block", rule, True))
        checks.one_of(owner, "pooling", self.pooling, ("first", "mean"))
        self._check_attention(owner)

    def _check_attention(self, owner: str) -> None:
        """Refuses an attention that has no place for what the other parts give to each attention."""
        if self.attention is None:
            return
        local, config = self.local_attention, self.attention.get_config()
        positions = self.positions or (local and local.positions)
        for name, part in {"positions": positions, "causal": self.causal, "window": local}.items():
            if part and config.get(name, "missing"):
                rule = f"take `{name}`, and leave it to the other parts"
                raise ValueError(checks.message(owner, "attention", rule, self.attention))

    def block_names(self, num_layers: int) -> list[str]:
        """The name of the block of each layer of an encoder.

        Examples:
            >>> EncoderParts().block_names(2), EncoderParts(shares_block=True).block_names(2)
            (['encoder_block_0', 'encoder_block_1'], ['encoder_block_0', 'encoder_block_0'])
        """
        return [f"encoder_block_{0 if self.shares_block else index}" for index in range(num_layers)]

    @property
    def are_of_bert(self) -> bool:
        """Whether all parts are BERT's."""
        return self == EncoderParts()

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        parts = ("positions", "feed_forward", "local_attention", "attention", "convolution")
        return {**values, **{name: serialized(values[name]) for name in parts}}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> EncoderParts:
        """The parts of a `get_config` dictionary."""
        return cls(**config)


def new_layer(pattern: keras.layers.Layer | None, **changes: Any) -> Any:
    """A new layer with the config of another, and these changes; None for None."""
    if pattern is None:
        return None
    config = pattern.get_config()
    return type(pattern).from_config(config | {name: value for name, value in changes.items() if name in config})
