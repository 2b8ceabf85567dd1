"""The graph of an encoder: the embedding, the blocks, and a last LayerNorm where the blocks normalize first."""

from __future__ import annotations

from typing import Any, NamedTuple

from keras_bert_layers.config import BertConfig
from keras_bert_layers.layers._final_layer_norm import FinalLayerNorm
from keras_bert_layers.layers.bert_embedding import BertEmbedding
from keras_bert_layers.layers.encoder_parts import EncoderParts, new_layer
from keras_bert_layers.layers.transformer_encoder_block import TransformerEncoderBlock


class Encoded(NamedTuple):
    """What an encoder gives.

    Args:
        hidden_states: the output of the embedding, and of each block.
        attention_scores: those of each block, if they are asked for.
        first: the last hidden state of the first tokens, `[B, H]`.
    """

    hidden_states: list[Any]
    attention_scores: list[Any]
    first: Any


def encode(config: BertConfig, parts: EncoderParts, policy: Any, inputs: dict[str, Any], with_scores: bool) -> Encoded:
    """The outputs of new layers for symbolic inputs.

    The last block is called twice, once for the first tokens only. A graph runs the call that its outputs need.
    """
    shared = {name: getattr(config, name) for name in ("dropout", "layer_norm_epsilon", "initializer_range")}
    positions = new_layer(
        parts.positions, name="positions", dtype=policy, max_sequence_length=config.max_sequence_length
    )
    if positions is not None:
        positions.build((None, config.num_heads, None, config.hidden_dim // config.num_heads))
    embedding = BertEmbedding(
        config.vocabulary_size,
        config.hidden_dim,
        max_sequence_length=config.max_sequence_length,
        num_segments=config.num_segments,
        embedding_dim=config.embedding_dim,
        position_offset=config.position_offset,
        positions=positions,
        dtype=policy,
        name="embedding",
        **shared,
    )
    hidden_states = [embedding(inputs["token_ids"], inputs["segment_ids"], padding_mask=inputs["padding_mask"])]
    attention_scores = []
    for index in range(config.num_layers):
        block = TransformerEncoderBlock(
            config.num_heads,
            config.intermediate_dim,
            activation=config.activation,
            attention_dropout=config.attention_dropout,
            normalize_first=parts.normalize_first,
            causal=parts.causal,
            positions=positions,
            feed_forward=new_layer(parts.feed_forward, name="feed_forward", dtype=policy),
            dtype=policy,
            name=f"encoder_block_{index}",
            **shared,
        )
        hidden = block(hidden_states[-1], inputs["padding_mask"], return_attention_scores=with_scores)
        if with_scores:
            hidden, scores = hidden
            attention_scores.append(scores)
        hidden_states.append(hidden)
    first = block(hidden_states[-2], inputs["padding_mask"], first_token_only=True)  # [B, H]
    if parts.normalize_first:
        norm = FinalLayerNorm(epsilon=config.layer_norm_epsilon, dtype=policy, name="final_layer_norm")
        hidden_states[-1], first = norm(hidden_states[-1]), norm(first)
    return Encoded(hidden_states, attention_scores, first)
