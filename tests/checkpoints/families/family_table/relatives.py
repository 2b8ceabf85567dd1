"""MPNet, DeBERTa, ModernBERT, NomicBERT, GTE, Jina and ALBERT: encoders, sentence encoders, classifiers and others."""

from typing import Any

from family_table.configs import SAVED, SIZES, XLM_R, XLM_R_SAVED, XLM_R_SPECIAL, labels, modules, tokenizer
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
# The keys of the code in the repositories, whose positions transformers has as "linear" alone.
_GTE: dict[str, Any] = {
    **{key: value for key, value in XLM_R.items() if key not in ("output_past", "use_cache", "bos_token_id")},
    **{"model_type": "new", "max_position_embeddings": 48, "layer_norm_eps": 1e-12, "classifier_dropout": 0.0},
    **{"attention_probs_dropout_prob": 0.0, "position_embedding_type": "rope", "layer_norm_type": "layer_norm"},
    **{"rope_theta": 20000, "rope_scaling": {"factor": 8.0, "type": "ntk"}, "pack_qkv": True, "unpad_inputs": False},
    **dict.fromkeys(("logn_attention_scale", "logn_attention_clip1", "use_memory_efficient_attention"), False),
    "auto_map": {"AutoModel": "Alibaba-NLP/new-impl--modeling.NewModel"},
}
del _GTE["eos_token_id"]


def _linear(base: float, factor: float) -> dict[str, Any]:
    parameters = {"rope_type": "linear", "rope_theta": base * factor, "factor": factor ** (2 / 4)}
    return {"model_type": "gte", "rope_scaling": None, "rope_theta": None, "rope_parameters": parameters}


_JINA: dict[str, Any] = {
    **{key: value for key, value in XLM_R.items() if key != "position_embedding_type"},
    **{"model_type": "jina_embeddings_v3", "rope_parameters": {"rope_type": "default", "rope_theta": 20_000.0}},
}
_OF_GTE: dict[str, Any] = {
    "vocabulary": "xlm-r",
    "dtype": "float16",
    "renames": (("^gte", "new"),),
    "warns": "auto_map",
    "theirs": _linear(20_000.0, 8.0),
}
_ALBERT: dict[str, Any] = {
    **SIZES,
    "architectures": ["AlbertForMaskedLM"],
    **{"attention_probs_dropout_prob": 0, "bos_token_id": 2, "classifier_dropout_prob": 0.1, "down_scale_factor": 1},
    **{"embedding_size": 10, "eos_token_id": 3, "gap_size": 0, "hidden_act": "gelu_new", "hidden_dropout_prob": 0},
    **{"initializer_range": 0.02, "inner_group_num": 1, "layer_norm_eps": 1e-12, "model_type": "albert"},
    **{"net_structure_type": 0, "num_hidden_groups": 1, "num_memory_blocks": 0, "pad_token_id": 0},
}
_ALBERT_V1: dict[str, Any] = {
    **_ALBERT,
    **{"attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1},
}
_OF_ALBERT: dict[str, Any] = {"vocabulary": "albert", "has_positions": True}
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
        name="albert/albert-base-v1",
        **{**_OF_ALBERT, "config": _ALBERT_V1, "makes": "AlbertForMaskedLM", "task": "masked_lm"},
        files={"tokenizer_config.json": {"model_max_length": 512}},
        weights_file="pytorch_model.bin",
    ),
    Family(
        name="albert/albert-base-v2",
        **{**_OF_ALBERT, "config": _ALBERT, "makes": "AlbertForMaskedLM", "task": "masked_lm"},
        files={"tokenizer_config.json": {"model_max_length": 512}},
        note="one block for all layers; pairs have segments 0 and 1, of which transformers 5 makes 0",
    ),
    Family(
        name="ai4bharat/indic-bert",
        **{**_OF_ALBERT, "config": _ALBERT_V1, "makes": "AlbertForMaskedLM", "task": "masked_lm"},
        has_tokenizer_json=False,
        weights_file="pytorch_model.bin",
        note="`spiece.model` alone; accents are dropped, as in transformers, unless `keep_accents` is stated",
    ),
    Family(
        name="sentence-transformers/paraphrase-albert-small-v2",
        **{**_OF_ALBERT, "config": {**_ALBERT, "architectures": ["AlbertModel"]}, "makes": "AlbertModel"},
        task="sentence_encoder",
        files=tokenizer({"model_max_length": 512, "tokenizer_class": "AlbertTokenizer"}, None) | modules(max_length=38),
    ),
    Family(
        name="textattack/albert-base-v2-SST-2",
        config={**_ALBERT, "architectures": ["AlbertForSequenceClassification"], "finetuning_task": "glue:sst-2"},
        **{**_OF_ALBERT, "makes": "AlbertForSequenceClassification", "task": "classifier"},
        has_tokenizer_json=False,
        weights_file="pytorch_model.bin",
        labels=("LABEL_0", "LABEL_1"),
    ),
    Family(
        name="microsoft/deberta-v3-base",
        **_OF_DEBERTA_V3,
        note="attention to contents and distances; its masked LM head is read too, which transformers makes anew",
    ),
    Family(name="microsoft/mdeberta-v3-base", **_OF_DEBERTA_V3),
    Family(
        name="microsoft/deberta-v2-xlarge",
        **{**_OF_DEBERTA_V3, "config": {**_DEBERTA, "conv_kernel_size": 3, "conv_act": "gelu"}},
        note="a convolution beside the first block",
    ),
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
    Family(
        name="Alibaba-NLP/gte-multilingual-base",
        config={**_GTE, "architectures": ["NewModel", "NewForTokenClassification"], "id2label": {"0": "LABEL_0"}},
        makes="GteForTokenClassification",
        task="sentence_encoder",
        reference="GteModel",
        files=tokenizer({**XLM_R_SAVED, "model_max_length": 32768}, XLM_R_SPECIAL) | modules("cls", normalize=True),
        note='the former code\'s scaled positions ("ntk"), which transformers has as "linear"',
        **_OF_GTE,
    ),
    Family(
        name="jinaai/jina-embeddings-v3-hf",
        config={**_JINA, "architectures": ["JinaEmbeddingsV3Model"]},
        makes="JinaEmbeddingsV3Model",
        vocabulary="xlm-r",
        files=tokenizer(XLM_R_SAVED, XLM_R_SPECIAL),
        note="XLM-RoBERTa with rotary positions; its adapters, and jinaai/jina-embeddings-v3, have tests of their own",
    ),
    Family(
        name="Alibaba-NLP/gte-multilingual-reranker-base",
        config={**_GTE, "architectures": ["NewForSequenceClassification"], **labels("LABEL_0")},
        makes="GteForSequenceClassification",
        task="cross_encoder",
        asks=True,
        reference="GteForSequenceClassification",
        files=tokenizer({**XLM_R_SAVED, "model_max_length": 32768}, XLM_R_SPECIAL),
        activation="sigmoid",
        **_OF_GTE,
    ),
    Family(
        name="Alibaba-NLP/gte-base-en-v1.5",
        config={
            **{**_GTE, "rope_theta": 500_000, "rope_scaling": {"factor": 2.0, "type": "ntk"}, "pad_token_id": 0},
            **{"architectures": ["NewModel"], "type_vocab_size": 0},
        },
        makes="GteModel",
        task="sentence_encoder",
        reference="GteModel",
        files=tokenizer({**SAVED, "model_max_length": 32768}) | modules("cls", max_length=8192),
        **{**_OF_GTE, "vocabulary": "uncased", "dtype": "float32", "theirs": _linear(500_000.0, 2.0)},
    ),
    Family(
        name="Snowflake/snowflake-arctic-embed-m-v2.0",
        config={
            **{**_GTE, "model_type": "gte", "rope_scaling": None, "rope_theta": 160_000},
            **{"architectures": ["GteModel"], "matryoshka_dimensions": [256], "auto_map": {"AutoModel": "x.GteModel"}},
        },
        makes="GteModel",
        task="sentence_encoder",
        vocabulary="xlm-r",
        files=tokenizer({**XLM_R_SAVED, "model_max_length": 8192}, XLM_R_SPECIAL) | modules("cls", normalize=True),
        warns="auto_map|matryoshka",
        note="GTE's class",
    ),
)
