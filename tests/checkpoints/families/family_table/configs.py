"""The parts of `config.json` and of other files that many families share, with small sizes."""

from __future__ import annotations

from typing import Any

SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 48,
    "type_vocab_size": 2,
    "vocab_size": None,
}

# The keys of the first converters, and still of google/...: no class, no type of position, no epsilon.
OLDEST: dict[str, Any] = {
    **SIZES,
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "initializer_range": 0.02,
}
BERT: dict[str, Any] = {
    **OLDEST,
    "gradient_checkpointing": False,
    "layer_norm_eps": 1e-12,
    "model_type": "bert",
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "transformers_version": "4.6.0.dev0",
    "use_cache": True,
}
# Google's multilingual and Chinese releases.
POOLER: dict[str, Any] = {
    "directionality": "bidi",
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
}
# Every default that transformers 2 wrote.
DUMP: dict[str, Any] = {
    "bos_token_id": 0,
    "do_sample": False,
    "eos_token_ids": 0,
    "finetuning_task": None,
    "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
    "is_decoder": False,
    "label2id": {"LABEL_0": 0, "LABEL_1": 1},
    "length_penalty": 1.0,
    "max_length": 20,
    "num_beams": 1,
    "num_labels": 2,
    "num_return_sequences": 1,
    "output_attentions": False,
    "output_hidden_states": False,
    "output_past": True,
    "pruned_heads": {},
    "repetition_penalty": 1.0,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "torchscript": False,
    "use_bfloat16": False,
}
DISTILBERT: dict[str, Any] = {
    "activation": "gelu",
    "attention_dropout": 0.1,
    "dim": 16,
    "dropout": 0.1,
    "hidden_dim": 24,
    "initializer_range": 0.02,
    "max_position_embeddings": 48,
    "model_type": "distilbert",
    "n_heads": 4,
    "n_layers": 2,
    "pad_token_id": 0,
    "qa_dropout": 0.1,
    "seq_classif_dropout": 0.2,
    "sinusoidal_pos_embds": False,
    "tie_weights_": True,
    "transformers_version": "4.10.0.dev0",
    "vocab_size": None,
}
ELECTRA: dict[str, Any] = {
    **OLDEST,
    "embedding_size": 8,
    "layer_norm_eps": 1e-12,
    "model_type": "electra",
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "summary_activation": "gelu",
    "summary_last_dropout": 0.1,
    "summary_type": "first",
    "summary_use_proj": True,
    "transformers_version": "4.9.0.dev0",
}
XLM_R: dict[str, Any] = {
    **OLDEST,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "layer_norm_eps": 1e-05,
    "max_position_embeddings": 50,
    "model_type": "xlm-roberta",
    "output_past": True,
    "pad_token_id": 1,
    "position_embedding_type": "absolute",
    "transformers_version": "4.17.0.dev0",
    "type_vocab_size": 1,
    "use_cache": True,
}
CAMEMBERT: dict[str, Any] = {**XLM_R, "bos_token_id": 5, "eos_token_id": 6, "model_type": "camembert"}

UNCASED: dict[str, Any] = {"do_lower_case": True, "model_max_length": 512}
CASED: dict[str, Any] = {"do_lower_case": False, "model_max_length": 512}
FIVE = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
# As transformers 4 saved a BertTokenizer.
SAVED: dict[str, Any] = {
    **FIVE,
    "do_lower_case": True,
    "tokenize_chinese_chars": True,
    "strip_accents": None,
    "model_max_length": 512,
    "special_tokens_map_file": None,
    "tokenizer_class": "BertTokenizer",
}
SAVED_CASED: dict[str, Any] = {**SAVED, "do_lower_case": False}
# The same with what the slow tokenizer had.
SAVED_SLOW: dict[str, Any] = {**SAVED, "do_basic_tokenize": True, "never_split": None}


def added_tokens(ids: dict[str, int], mask: str = "[MASK]") -> dict[str, Any]:
    """The `added_tokens_decoder` of transformers 4.34 and later."""
    flags = {"normalized": False, "rstrip": False, "single_word": False, "special": True}
    return {
        str(index): {"content": token, "lstrip": token == mask == "<mask>", **flags} for token, index in ids.items()
    }


GOOGLE_IDS = {"[PAD]": 0, "[UNK]": 4, "[CLS]": 5, "[SEP]": 6, "[MASK]": 7}
DECODER: dict[str, Any] = {
    **SAVED,
    "added_tokens_decoder": added_tokens(GOOGLE_IDS),
    "clean_up_tokenization_spaces": True,
}
_MASK_OBJECT = {
    "content": "<mask>",
    "lstrip": True,
    "normalized": True,
    "rstrip": False,
    "single_word": False,
    "__type": "AddedToken",
}
XLM_R_SPECIAL: dict[str, Any] = {
    "bos_token": "<s>",
    "cls_token": "<s>",
    "eos_token": "</s>",
    "mask_token": _MASK_OBJECT,
    "pad_token": "<pad>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
}
XLM_R_SAVED: dict[str, Any] = {**XLM_R_SPECIAL, "model_max_length": 512, "tokenizer_class": "XLMRobertaTokenizer"}

# The id -1 is that of the last token.
XLM_R_DECODER: dict[str, Any] = {
    **{key: token if isinstance(token, str) else "<mask>" for key, token in XLM_R_SPECIAL.items()},
    "added_tokens_decoder": added_tokens({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": -1}, "<mask>"),
    "clean_up_tokenization_spaces": True,
    "extra_special_tokens": {},
    "max_length": 8192,
    "model_max_length": 8192,
    "pad_to_multiple_of": None,
    "pad_token_type_id": 0,
    "padding_side": "right",
    "sp_model_kwargs": {},
    "stride": 0,
    "tokenizer_class": "XLMRobertaTokenizer",
    "truncation_side": "right",
    "truncation_strategy": "longest_first",
}


def labels(*names: str) -> dict[str, Any]:
    """`id2label` and `label2id`."""
    return {
        "id2label": {str(index): name for index, name in enumerate(names)},
        "label2id": {name: index for index, name in enumerate(names)},
    }


def tokenizer(config: dict[str, Any] | None, special: Any = FIVE, added: Any = None) -> dict[str, Any]:
    """The small files of a tokenizer; None leaves one out."""
    named = {"tokenizer_config.json": config, "special_tokens_map.json": special, "added_tokens.json": added}
    return {name: values for name, values in named.items() if values is not None}


def modules(
    pooling: str = "mean",
    *,
    normalize: bool = False,
    dense: dict[str, Any] | None = None,
    max_length: int = 512,
    lowercase: bool = False,
    size: int = 16,
    **settings: Any,
) -> dict[str, Any]:
    """sentence-transformers' files; `settings` are those of `config_sentence_transformers.json`."""
    kinds = ["Transformer", "Pooling", *(["Dense"] if dense else []), *(["Normalize"] if normalize else [])]
    paths = ["", *(f"{index}_{kind}" for index, kind in enumerate(kinds) if index)]
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    chosen = {f"pooling_mode_{mode}": mode.startswith(pooling) and mode != "mean_sqrt_len_tokens" for mode in modes}
    versions = {"__version__": {"sentence_transformers": "2.2.2", "transformers": "4.28.1", "pytorch": "1.13.0"}}
    files = {
        "modules.json": [
            {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for index, (path, kind) in enumerate(zip(paths, kinds, strict=True))
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": size, **chosen},
        "sentence_bert_config.json": {"max_seq_length": max_length, "do_lower_case": lowercase},
        "config_sentence_transformers.json": {**versions, **settings},
    }
    if dense:
        files["2_Dense/config.json"] = dense
    return files
