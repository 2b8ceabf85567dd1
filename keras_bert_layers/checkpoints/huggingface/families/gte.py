"""GTE: rotary positions, and gated layers whose first product has no bias; XLM-RoBERTa's tokenizer or BERT's.

`model_type` is "new" in the repositories of the first models, with the code that was beside them, and "gte" in
transformers and in Snowflake's models. The names of the tensors in files are those of the former code, which
transformers reads and writes too.

References:
    Zhang et al. 2024, https://arxiv.org/abs/2407.19669; transformers, models/gte/modeling_gte.py, and
    conversion_mapping.py for the names in files. The former code: Alibaba-NLP/new-impl, modeling.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_bert_layers._internal import keys
from keras_bert_layers.checkpoints.huggingface.families.family import READER, Family, TensorNames, check_positions
from keras_bert_layers.checkpoints.huggingface.families.rotary import (
    BLOCK_TENSORS,
    GATED_TENSORS,
    QUERY_KEY_VALUE,
    ROTARY_KEYS,
    RotaryParts,
)
from keras_bert_layers.config import BertConfig

# Keys of the former code that are read with these values only.
_FORMER_ONLY: dict[str, tuple[Any, ...]] = {
    "position_embedding_type": ("rope",),
    "layer_norm_type": ("layer_norm", None),
    "pack_qkv": (True, None),
    **dict.fromkeys(("logn_attention_scale", "logn_attention_clip1"), (False, None)),
}
# transformers' defaults, where they are not BERT's.
_DEFAULTS = {
    "hidden_act": "gelu",
    "attention_probs_dropout_prob": 0.0,
    "max_position_embeddings": 8192,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-12,
}


def _todays(values: Mapping[str, Any]) -> dict[str, Any]:
    """The content with what transformers takes for a key that is not there."""
    keys.check_only(READER, values, _FORMER_ONLY)
    result = {**_DEFAULTS, **values}
    check_positions("max_position_embeddings", result["max_position_embeddings"])
    return result


class _GteParts(RotaryParts):
    """GTE's blocks: rotary positions, and gates without a bias."""

    def blocks(self, config: BertConfig) -> dict[str, Any]:
        from keras_bert_layers.layers import GatedFeedForward

        options: dict[str, Any] = {"activation": config.activation, "initializer_range": config.initializer_range}
        layer = GatedFeedForward(config.intermediate_dim, gate_has_bias=False, dropout=config.dropout, **options)
        return {"feed_forward": layer}


GTE = Family(
    title="GTE",
    model_types=("gte", "new"),
    class_prefixes=("Gte", "New"),
    names=TensorNames(
        prefix="gte.",
        block="layers.",
        block_tensors={**BLOCK_TENSORS, **GATED_TENSORS},
        tensors={
            "lm_head.dense.": "cls.predictions.transform.dense.",
            "lm_head.layer_norm.": "cls.predictions.transform.LayerNorm.",
            "lm_head.decoder.bias": "cls.predictions.bias",
            "lm_head.decoder.weight": "cls.predictions.decoder.weight",
        },
        has_one_bias=True,
        in_files={
            "encoder.layer.": "layers.",
            "attention.o_proj.": "self_attn.o_proj.",
            "attn_ln.": "post_attention_layernorm.",
            "mlp_ln.": "post_mlp_layernorm.",
            "lm_head.norm.": "lm_head.layer_norm.",
        },
        prefix_in_files="new.",
        merged={
            "attention.qkv_proj.": QUERY_KEY_VALUE,
            "mlp.up_gate_proj.": ("mlp.up_proj.", "mlp.gate_proj."),
        },
    ),
    todays=_todays,
    unread=ROTARY_KEYS | frozenset(_FORMER_ONLY) | {"unpad_inputs", "use_memory_efficient_attention"},
    has_pooler=False,
    may_lack_segments=True,
    pad_id=1,
    masked_lm_activation="gelu_erf",
    default_tokenizers={"gte": "XLMRobertaTokenizer"},
    parts=_GteParts(160_000.0, ("default", "linear", "ntk")),
)
