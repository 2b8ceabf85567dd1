"""MPNet: positions as in RoBERTa, and a bias of each distance that all blocks share; BERT's WordPiece, no segments.

References:
    Song et al. 2020, https://arxiv.org/abs/2004.09297; transformers, models/mpnet/modeling_mpnet.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keras_bert_layers.checkpoints.huggingface.families.family import ROBERTA_HEADS, Family, PartsForm, TensorNames
from keras_bert_layers.config import BertConfig

if TYPE_CHECKING:
    from keras_bert_layers.layers.encoder_parts import EncoderParts


class _RelativePositions(PartsForm):
    """MPNet's bias of each distance beside the trained positions; its number of buckets is fixed."""

    def read(self, values: Mapping[str, Any], config: BertConfig) -> EncoderParts | None:
        from keras_bert_layers.layers import EncoderParts, RelativePositionBias

        return EncoderParts(positions=RelativePositionBias(keeps_position_embedding=True))

    def written(self, parts: EncoderParts, config: BertConfig) -> dict[str, Any] | None:
        from keras_bert_layers.layers import RelativePositionBias

        others, own = dataclasses.replace(parts, positions=None), parts.positions
        if not others.are_of_bert or type(own) is not RelativePositionBias:
            return None
        return {} if (own.num_buckets, own.max_distance, own.keeps_position_embedding) == (32, 128, True) else None


MPNET = Family(
    title="MPNet",
    model_types=("mpnet",),
    class_prefixes=("MPNet",),
    names=TensorNames(
        prefix="mpnet.",
        block_tensors={
            "attention.attn.q.": "attention.self.query.",
            "attention.attn.k.": "attention.self.key.",
            "attention.attn.v.": "attention.self.value.",
            "attention.attn.o.": "attention.output.dense.",
            "attention.LayerNorm.": "attention.output.LayerNorm.",
        },
        **ROBERTA_HEADS,
    ),
    constants={"type_vocab_size": 0},
    # transformers computes with 32 whatever is stated, and with the id 1 of padding.
    only={"relative_attention_num_buckets": (32,), "pad_token_id": (1,)},
    masked_lm_activation="gelu_erf",
    dropouts=dict.fromkeys(("classifier", "cross_encoder", "multiple_choice", "token_classifier")),
    counts_padding=True,
    tokenizer_class="MPNetTokenizer",
    default_tokenizers={"mpnet": "MPNetTokenizer"},
    parts=_RelativePositions(),
)
