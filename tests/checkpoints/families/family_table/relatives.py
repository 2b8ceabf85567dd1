"""MPNet, ModernBERT, NomicBERT and DeBERTa: encoders, sentence encoders, classifiers and others."""

from typing import Any

from family_table.configs import SAVED, SIZES, XLM_R, labels, modules, tokenizer
from family_table.family import Family

_MPNET: dict[str, Any] = {
    **{
        key: value for key, value in XLM_R.items() if key not in ("output_past", "position_embedding_type", "use_cache")
    },
    "model_type": "mpnet",
    "relative_attention_num_buckets": 32,
}
del _MPNET["type_vocab_size"]
_MPNET_TOKENS: dict[str, Any] = {
    "bos_token": "<s>",
    "cls_token": "<s>",
    "do_lower_case": True,
    "eos_token": "</s>",
    "mask_token": "<mask>",
    "model_max_length": 512,
    "pad_token": "<pad>",
    "sep_token": "</s>",
    "special_tokens_map_file": None,
    "strip_accents": None,
    "tokenize_chinese_chars": True,
    "tokenizer_class": "MPNetTokenizer",
    "unk_token": "[UNK]",
}
_OF_MPNET: dict[str, Any] = {
    "config": {**_MPNET, "architectures": ["MPNetForMaskedLM"]},
    "makes": "MPNetModel",
    "vocabulary": "mpnet",
}
_MODERN: dict[str, Any] = {
    **{key: value for key, value in SIZES.items() if key != "type_vocab_size"},
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 50281,
    "classifier_activation": "gelu",
    "classifier_bias": False,
    "classifier_dropout": 0.0,
    "classifier_pooling": "mean",
    "cls_token_id": 50281,
    "decoder_bias": True,
    "deterministic_flash_attn": False,
    "embedding_dropout": 0.0,
    "eos_token_id": 50282,
    "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0,
    "gradient_checkpointing": False,
    "hidden_activation": "gelu",
    "initializer_cutoff_factor": 2.0,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-05,
    "local_attention": 6,
    "local_rope_theta": 10000.0,
    "mlp_bias": False,
    "mlp_dropout": 0.0,
    "model_type": "modernbert",
    "norm_bias": False,
    "norm_eps": 1e-05,
    "num_hidden_layers": 4,
    "pad_token_id": 3,
    "position_embedding_type": "absolute",
    "tie_word_embeddings": True,
    "transformers_version": "4.47.0.dev0",
}
_ROLES = {"cls": "[CLS]", "mask": "[MASK]", "pad": "[PAD]", "sep": "[SEP]", "unk": "[UNK]"}
_MODERN_TOKENS: dict[str, Any] = {
    **{f"{role}_token": token for role, token in _ROLES.items()},
    "clean_up_tokenization_spaces": True,
    "extra_special_tokens": {},
    "model_input_names": ["input_ids", "attention_mask"],
    "model_max_length": 8192,
    "tokenizer_class": "PreTrainedTokenizerFast",
}
_MODERN_MAP = {
    f"{role}_token": {
        "content": token,
        "lstrip": role == "mask",
        "normalized": False,
        "rstrip": False,
        "single_word": False,
    }
    for role, token in _ROLES.items()
}
_MODERN_FILES = tokenizer(_MODERN_TOKENS, _MODERN_MAP)


def _modern(architecture: str, **more: Any) -> dict[str, Any]:
    config = {**_MODERN, "architectures": [architecture], **more}
    return {"config": config, "makes": architecture, "vocabulary": "modernbert"}


# The keys of the code that was in the repositories, and beside them, in newer revisions, those of transformers 5.
_NOMIC: dict[str, Any] = {
    **{"n_embd": 16, "n_layer": 2, "n_head": 4, "n_inner": 24, "n_positions": 48, "vocab_size": None},
    **{"activation_function": "swiglu", "layer_norm_epsilon": 1e-12, "initializer_range": 0.02, "type_vocab_size": 2},
    **dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop", "summary_first_dropout"), 0.0),
    **dict.fromkeys(("causal", "prenorm", "parallel_block", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"), False),
    **dict.fromkeys(("parallel_block_tied_norm", "use_rms_norm", "rotary_emb_interleaved"), False),
    **dict.fromkeys(("fused_bias_fc", "fused_dropout_add_ln", "dense_seq_output", "use_xentropy"), True),
    **dict.fromkeys(("rotary_emb_scale_base", "rotary_scaling_factor", "bos_token_id", "eos_token_id"), None),
    **{"rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "max_trained_positions": 32, "scale_attn_weights": True},
    **{"pad_vocab_size_multiple": 64, "use_flash_attn": True, "use_cache": True, "model_type": "nomic_bert"},
    "scale_attn_by_inverse_layer_idx": False,
    "reorder_and_upcast_attn": False,
    "architectures": ["NomicBertModel"],
    "auto_map": {"AutoModel": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel"},
    **{key: value for key, value in SIZES.items() if value is not None},
    **{"hidden_act": "silu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "layer_norm_eps": 1e-12},
    **{"max_position_embeddings": 32, "rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"}},
}
_DEBERTA: dict[str, Any] = {
    **{**SIZES, "type_vocab_size": 0},
    **{
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "initializer_range": 0.02,
    },
    **{"layer_norm_eps": 1e-07, "model_type": "deberta-v2", "max_relative_positions": -1, "position_buckets": 8},
    **{"norm_rel_ebd": "layer_norm", "pos_att_type": "p2c|c2p", "position_biased_input": False},
    **{"relative_attention": True, "share_att_key": True},
}
# What transformers 4 wrote of it.
_SAVED_DEBERTA: dict[str, Any] = {
    **{**_DEBERTA, "pos_att_type": ["p2c", "c2p"], "pad_token_id": 0, "pooler_dropout": 0, "pooler_hidden_act": "gelu"},
    **{"pooler_hidden_size": 16, "torch_dtype": "float32", "transformers_version": "4.18.0"},
}
_DEBERTA_SPM = {"tokenizer_config.json": {"do_lower_case": False, "vocab_type": "spm"}}
_DEBERTA_FILES = tokenizer(
    {
        **{f"{role}_token": token for role, token in _ROLES.items()},
        **{"bos_token": "[CLS]", "eos_token": "[SEP]", "do_lower_case": False, "split_by_punct": False},
        **{
            "model_max_length": 512,
            "sp_model_kwargs": {},
            "vocab_type": "spm",
            "tokenizer_class": "DebertaV2Tokenizer",
        },
    },
    {f"{role}_token": token for role, token in _ROLES.items()},
)


def _deberta(architecture: str, *names: str, **more: Any) -> dict[str, Any]:
    config = {**_SAVED_DEBERTA, "architectures": [architecture], **(labels(*names) if names else {}), **more}
    return {"config": config, "makes": architecture, "vocabulary": "deberta", "files": _DEBERTA_FILES}


_OF_DEBERTA_V3: dict[str, Any] = {
    "config": _DEBERTA,
    "makes": "DebertaV2ForMaskedLM",
    "reference": "DebertaV2Model",
    "vocabulary": "deberta",
    "files": _DEBERTA_SPM,
    "has_tokenizer_json": False,
    "weights_file": "pytorch_model.bin",
    "renames": (
        (r"^cls\.predictions\.transform\.", "lm_predictions.lm_head."),
        (r"^cls\.predictions\.bias", "lm_predictions.lm_head.bias"),
    ),
    "extra": {"deberta.embeddings.position_embeddings.weight": (48, 16), "mask_predictions.dense.weight": (16, 16)},
}
_NLI = ("entailment", "neutral", "contradiction")
RELATIVES = (
    Family(
        name="microsoft/deberta-v3-base",
        **_OF_DEBERTA_V3,
        note="attention to contents and distances; its masked LM head is read too, which transformers makes anew",
    ),
    Family(name="microsoft/mdeberta-v3-base", **_OF_DEBERTA_V3),
    Family(
        name="MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli",
        **_deberta("DebertaV2ForSequenceClassification", *_NLI),
        task="classifier",
        labels=_NLI,
    ),
    Family(
        name="cross-encoder/nli-deberta-v3-base",
        **_deberta("DebertaV2ForSequenceClassification", "contradiction", "entailment", "neutral"),
        task="classifier",
        labels=("contradiction", "entailment", "neutral"),
    ),
    Family(
        name="mixedbread-ai/mxbai-rerank-base-v1",
        **_deberta("DebertaV2ForSequenceClassification", "LABEL_0", legacy=True),
        task="cross_encoder",
        asks=True,
        activation="sigmoid",
        dtype="float16",
    ),
    Family(
        name="deepset/deberta-v3-base-squad2", **_deberta("DebertaV2ForQuestionAnswering"), task="question_answerer"
    ),
    Family(
        name="microsoft/mpnet-base",
        **{**_OF_MPNET, "makes": "MPNetForMaskedLM"},
        task="masked_lm",
        files={"tokenizer_config.json": {"do_lower_case": True, "model_max_length": 512}},
        note="relative positions beside BERT's; WordPiece with RoBERTa's special tokens",
        weights_file="pytorch_model.bin",
        has_tokenizer_json=False,
    ),
    Family(
        name="sentence-transformers/all-mpnet-base-v2",
        **_OF_MPNET,
        task="sentence_encoder",
        files=tokenizer(_MPNET_TOKENS, None) | modules(normalize=True, max_length=38),
        has_positions=True,
    ),
    Family(
        name="sentence-transformers/multi-qa-mpnet-base-dot-v1",
        **_OF_MPNET,
        task="sentence_encoder",
        files=tokenizer(_MPNET_TOKENS, None) | modules("cls"),
        has_positions=True,
    ),
    Family(
        name="sentence-transformers/paraphrase-mpnet-base-v2",
        **_OF_MPNET,
        task="sentence_encoder",
        files=tokenizer(_MPNET_TOKENS, None) | modules(),
        has_positions=True,
    ),
    Family(
        name="answerdotai/ModernBERT-base",
        **_modern("ModernBertForMaskedLM"),
        task="masked_lm",
        files=_MODERN_FILES,
        note="local attention, rotary positions, gated layers; byte-level BPE in NFC",
    ),
    Family(
        name="answerdotai/ModernBERT-large",
        **_modern("ModernBertForMaskedLM", num_hidden_layers=7),
        task="masked_lm",
        files=_MODERN_FILES,
        dtype="float16",
    ),
    Family(
        name="Alibaba-NLP/gte-modernbert-base",
        **_modern("ModernBertModel"),
        task="sentence_encoder",
        files=_MODERN_FILES | modules("cls", max_length=8192),
        dtype="float16",
    ),
    Family(
        name="nomic-ai/modernbert-embed-base",
        **_modern("ModernBertModel"),
        task="sentence_encoder",
        files=_MODERN_FILES | modules(normalize=True, max_length=8192),
    ),
    Family(
        name="Alibaba-NLP/gte-reranker-modernbert-base",
        **_modern("ModernBertForSequenceClassification", sparse_prediction=False, **labels("LABEL_0")),
        task="cross_encoder",
        asks=True,
        files=_MODERN_FILES,
        activation="sigmoid",
        dtype="float16",
    ),
    Family(
        name="tasksource/ModernBERT-base-nli",
        **_modern("ModernBertForSequenceClassification", **labels("entailment", "neutral", "contradiction")),
        task="classifier",
        files=_MODERN_FILES,
        labels=("entailment", "neutral", "contradiction"),
    ),
    Family(
        name="nomic-ai/nomic-embed-text-v1.5",
        config=_NOMIC,
        makes="NomicBertModel",
        task="sentence_encoder",
        files=tokenizer({**SAVED, "model_max_length": 8192}) | modules(max_length=8192),
        warns="auto_map",
        note="rotary positions, gated layers; keys of its former code and of transformers 5",
    ),
)
