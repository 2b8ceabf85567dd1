"""NomicBERT: rotary positions and gated layers, with biases in LayerNorm and in the heads only; BERT's WordPiece.

Its `config.json` has two forms: that of transformers from release 5 on, which is written, and that of the code which
was in its repositories before, with GPT-2's keys; the released checkpoints state both. The names of the tensors in
files are those of the older code, which transformers reads and writes too.

References:
    Nussbaum et al. 2024, https://arxiv.org/abs/2402.01613; transformers, models/nomic_bert/modeling_nomic_bert.py, and
    conversion_mapping.py for the older names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_bert_layers._internal import checks, keys
from keras_bert_layers.checkpoints.huggingface.families.family import (
    READER,
    Family,
    TensorNames,
    check_positions,
)
from keras_bert_layers.checkpoints.huggingface.families.rotary import (
    BLOCK_TENSORS,
    GATED_TENSORS,
    QUERY_KEY_VALUE,
    ROTARY_KEYS,
    RotaryParts,
)
from keras_bert_layers.config import BertConfig

# GPT-2's keys -> BERT's, which are read where both are there.
_OLDER_KEYS = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "layer_norm_epsilon": "layer_norm_eps",
    "resid_pdrop": "hidden_dropout_prob",
    "attn_pdrop": "attention_probs_dropout_prob",
}
# Keys of the older code that are read with these values only.
_OLDER_ONLY: dict[str, tuple[Any, ...]] = {
    "activation_function": ("swiglu",),
    "rotary_emb_fraction": (1.0,),
    **dict.fromkeys(("qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "prenorm", "causal"), (False,)),
    **dict.fromkeys(("rotary_emb_interleaved", "use_rms_norm", "parallel_block"), (False, None)),
    **dict.fromkeys(("rotary_emb_scale_base", "rotary_scaling_factor", "rope_scaling", "num_heads_kv"), (None,)),
    **dict.fromkeys(("moe_every_n_layers", "num_experts"), (0, None)),
    **dict.fromkeys(("scale_attn_by_inverse_layer_idx", "parallel_block_tied_norm"), (False, None)),
    "scale_attn_weights": (True, None),
}
_REASONS = dict.fromkeys(("moe_every_n_layers", "num_experts"), "A mixture of experts is not implemented.")
# transformers' defaults, where they are not BERT's.
_DEFAULTS = {
    "hidden_act": "silu",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}


def _todays(values: Mapping[str, Any]) -> dict[str, Any]:
    """The content with today's keys; what neither form states has the default of transformers."""
    keys.check_only(READER, values, _OLDER_ONLY, _REASONS)
    older = {name: values[key] for key, name in _OLDER_KEYS.items() if values.get(key) is not None}
    for key, name in _OLDER_KEYS.items():
        if name in older and name in values and older[name] != values[name]:
            raise ValueError(checks.message(READER, key, f"be the `{name}`, {values[name]!r}", values[key]))
    result = {**_DEFAULTS, **older, **{key: value for key, value in values.items() if key not in _OLDER_KEYS}}
    # The angles of all positions are known, and sentence-transformers computes as many as the tokenizer gives.
    lengths = [values[key] for key in ("max_position_embeddings", "n_positions") if values.get(key) is not None]
    for length in lengths:
        checks.integer(READER, "max_position_embeddings", length, smallest=1)
    check_positions("max_position_embeddings", max(lengths, default=0))
    # The head of the older class is that of a masked language model alone.
    names = values.get("architectures")
    if isinstance(names, list):
        result["architectures"] = [str(name).replace("ForPreTraining", "ForMaskedLM") for name in names]
    return {**result, **({"max_position_embeddings": max(lengths)} if lengths else {})}


class _NomicParts(RotaryParts):
    """NomicBERT's blocks: rotary positions, gates, and biases in LayerNorm alone."""

    def blocks(self, config: BertConfig) -> dict[str, Any]:
        from keras_bert_layers.layers import GatedFeedForward, SelfAttention

        options: dict[str, Any] = {"initializer_range": config.initializer_range, "use_bias": False}
        return {
            "attention": SelfAttention(config.num_heads, dropout=config.attention_dropout, **options),
            "feed_forward": GatedFeedForward(config.intermediate_dim, activation=config.activation, **options),
        }


NOMIC_BERT = Family(
    title="NomicBERT",
    model_types=("nomic_bert",),
    class_prefixes=("NomicBert",),
    names=TensorNames(
        prefix="nomic_bert.",
        block="layers.",
        block_tensors={**BLOCK_TENSORS, **GATED_TENSORS},
        tensors={"cls.predictions.transform.layer_norm.": "cls.predictions.transform.LayerNorm."},
        in_files={
            "encoder.layers.": "layers.",
            "emb_ln.": "embeddings.LayerNorm.",
            "attn.out_proj.": "self_attn.o_proj.",
            "mlp.fc11.": "mlp.up_proj.",
            "mlp.fc12.": "mlp.gate_proj.",
            "mlp.fc2.": "mlp.down_proj.",
            "norm1.": "post_attention_layernorm.",
            "norm2.": "post_mlp_layernorm.",
        },
        prefix_in_files="bert.",
        merged={"attn.Wqkv.": QUERY_KEY_VALUE},
    ),
    todays=_todays,
    unread=ROTARY_KEYS
    | {"n_positions"}
    | frozenset(_OLDER_ONLY)
    | {"embd_pdrop", "dense_seq_output", "fused_bias_fc", "fused_dropout_add_ln", "use_flash_attn", "use_xentropy"}
    | {"last_layer_subset", "max_trained_positions", "pad_vocab_size_multiple", "reorder_and_upcast_attn", "ffn_div"},
    has_pooler=False,
    default_tokenizers={"nomic_bert": "BertTokenizer"},
    parts=_NomicParts(1000.0),
)
