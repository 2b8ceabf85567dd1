"""ALBERT: BERT with one block for all layers, a narrow embedding and a sentence-order head; SentencePiece tokens.

References:
    Lan et al. 2019, https://arxiv.org/abs/1909.11942; transformers, models/albert/modeling_albert.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.huggingface.families.family import READER, Family, PartsForm, TensorNames
from keras_bert_layers.config import BertConfig

if TYPE_CHECKING:
    from keras_bert_layers.layers.encoder_parts import EncoderParts

# transformers' defaults, where they are not BERT's.
_DEFAULTS = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "embedding_size": 128}
# Far above the 24 of the released models. No tensors limit the number of calls of one block.
_MOST_LAYERS = 1000


class _SharedBlock(PartsForm):
    """The block that all layers share, after an embedding that is always projected."""

    def read(self, values: Mapping[str, Any], config: BertConfig) -> EncoderParts | None:
        from keras_bert_layers.layers import EncoderParts

        if config.num_layers > _MOST_LAYERS:
            rule = f"be at most {_MOST_LAYERS}"
            raise ValueError(checks.message(READER, "num_hidden_layers", rule, config.num_layers))
        if config.embedding_dim is None:
            cure = "transformers projects an embedding of this width too, which is not implemented."
            rule = f"be less than `hidden_size`, {config.hidden_dim}"
            raise ValueError(checks.message(READER, "embedding_size", rule, config.hidden_dim, cure))
        return EncoderParts(shares_block=True)

    def written(self, parts: EncoderParts, config: BertConfig) -> dict[str, Any] | None:
        is_one = parts.shares_block and dataclasses.replace(parts, shares_block=False).are_of_bert
        return {} if is_one and config.embedding_dim is not None and not config.position_offset else None


ALBERT = Family(
    title="ALBERT",
    model_types=("albert",),
    class_prefixes=("Albert",),
    names=TensorNames(
        prefix="albert.",
        block="encoder.albert_layer_groups.0.albert_layers.",
        block_tensors={
            **{f"attention.{name}.": f"attention.self.{name}." for name in ("query", "key", "value")},
            "attention.dense.": "attention.output.dense.",
            "attention.LayerNorm.": "attention.output.LayerNorm.",
            "ffn.": "intermediate.dense.",
            "ffn_output.": "output.dense.",
            "full_layer_layer_norm.": "output.LayerNorm.",
        },
        tensors={
            "encoder.embedding_hidden_mapping_in.": "embeddings_project.",
            "pooler.": "pooler.dense.",
            "predictions.dense.": "cls.predictions.transform.dense.",
            "predictions.LayerNorm.": "cls.predictions.transform.LayerNorm.",
            "predictions.bias": "cls.predictions.bias",
            "predictions.decoder.": "cls.predictions.decoder.",
            "sop_classifier.classifier.": "cls.seq_relationship.",
        },
    ),
    unread=frozenset({"down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"}),
    only={"num_hidden_groups": (1,), "inner_group_num": (1,)},
    has_projection=True,
    predicts_pairs=True,
    dropouts=dict.fromkeys(
        ("classifier", "cross_encoder", "multiple_choice", "token_classifier"), ("classifier_dropout_prob", 0.1)
    ),
    todays=lambda values: {**_DEFAULTS, **values},
    default_tokenizers={"albert": "AlbertTokenizer"},
    parts=_SharedBlock(),
)
