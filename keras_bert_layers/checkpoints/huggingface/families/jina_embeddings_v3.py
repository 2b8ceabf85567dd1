"""Jina embeddings v3: XLM-RoBERTa with rotary positions.

In its first repositories `model_type` is "xlm-roberta", with `position_embedding_type` "rotary" and keys of the code
that was beside them, and the adapters are in the weights themselves; beside transformers' own they are folders of PEFT.
The names of the tensors in files are those of that code, which transformers reads and writes too.

References:
    Sturua et al. 2024, https://arxiv.org/abs/2409.10173; transformers,
    models/jina_embeddings_v3/modeling_jina_embeddings_v3.py, and conversion_mapping.py for the names in files. The
    former code: jinaai/xlm-roberta-flash-implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_bert_layers._internal import keys
from keras_bert_layers.checkpoints.huggingface.families.family import (
    READER,
    ROBERTA_HEADS,
    Family,
    TensorNames,
    check_positions,
    stated_names,
)
from keras_bert_layers.checkpoints.huggingface.families.rotary import (
    BLOCK_TENSORS,
    QUERY_KEY_VALUE,
    ROTARY_KEYS,
    RotaryParts,
)

# Keys of the former code that are read with these values only.
_FORMER_ONLY: dict[str, tuple[Any, ...]] = {
    "position_embedding_type": ("rotary",),
    **dict.fromkeys(("emb_pooler", "truncate_dim"), (None,)),
}
# transformers' defaults, where they are not BERT's.
_DEFAULTS = {"hidden_act": "gelu", "max_position_embeddings": 8194, "type_vocab_size": 1, "layer_norm_eps": 1e-5}


def _todays(values: Mapping[str, Any]) -> dict[str, Any]:
    """The content with today's classes, and what transformers takes for a key that is not there."""
    keys.check_only(READER, values, _FORMER_ONLY)
    result = {**_DEFAULTS, **values}
    if values["model_type"] != JINA_EMBEDDINGS_V3.model_types[0]:
        keys.check_present(READER, values, ["rotary_emb_base"])  # its default was not transformers'
    check_positions("max_position_embeddings", result["max_position_embeddings"])
    if "architectures" in values:
        result["architectures"] = [name.replace("XLMRobertaLoRA", "XLMRobertaModel") for name in stated_names(values)]
    return result


JINA_EMBEDDINGS_V3 = Family(
    title="Jina embeddings v3",
    model_types=("jina_embeddings_v3",),
    class_prefixes=("JinaEmbeddingsV3", "XLMRoberta"),
    names=TensorNames(
        prefix="roberta.",
        block="layers.",
        block_tensors={
            **BLOCK_TENSORS,
            "mlp.fc1.": "intermediate.dense.",
            "mlp.fc2.": "output.dense.",
        },
        **ROBERTA_HEADS,
        in_files={
            "emb_ln.": "embeddings.LayerNorm.",
            "encoder.layers.": "layers.",
            "mixer.out_proj.": "self_attn.o_proj.",
            "norm1.": "post_attention_layernorm.",
            "norm2.": "post_mlp_layernorm.",
        },
        merged={"mixer.Wqkv.": QUERY_KEY_VALUE},
    ),
    todays=_todays,
    unread=ROTARY_KEYS
    | frozenset(_FORMER_ONLY)
    | {"use_flash_attn", "load_trained_adapters", "lora_main_params_trainable", "lora_dropout_p", "lora_adaptations"}
    | {"lora_rank", "lora_alpha", "task_instructions", "matryoshka_dimensions", "use_reentrant"},
    masked_lm_activation="gelu_erf",
    pad_id=1,
    adapters=("retrieval.query", "retrieval.passage", "separation", "classification", "text-matching"),
    default_tokenizers={"jina_embeddings_v3": "XLMRobertaTokenizer"},
    parts=RotaryParts(20_000.0),
)
