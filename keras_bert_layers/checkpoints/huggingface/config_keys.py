"""The fields of `BertConfig` in a HuggingFace `config.json`: honoured, fixed to one value, or ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_bert_layers._internal import checks, keys
from keras_bert_layers.config import BertConfig

_SAME_NAME = ("relu", "relu6", "silu", "mish", "tanh", "sigmoid", "linear")

# transformers 5, activations.py: which of the two forms of GELU each name means there. "quick_gelu", "gelu_10" and
# "leaky_relu" (slope 0.01 there, another in Keras) are other functions and are refused.
_ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), "gelu_erf"),
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_accurate", "gelu_pytorch_tanh", "gelu_python_tanh"), "gelu_tanh"),
    "swish": "silu",
    **{name: name for name in _SAME_NAME},
}
# The inverse, with the names that transformers' own configs use.
_WRITTEN_ACTIVATIONS = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new", **{name: name for name in _SAME_NAME}}

# Google's files have these keys too.
SHARED_NAMES = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_act": "activation",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "initializer_range": "initializer_range",
    "embedding_size": "embedding_dim",
}
# These keys have no default: a wrong head count, for example, fits every weight and gives wrong outputs.
_REQUIRED = list(SHARED_NAMES)[:8]
_NAMES = {**SHARED_NAMES, "layer_norm_eps": "layer_norm_epsilon"}

# Keys that are allowed only with a value for which the encoder is plain BERT.
SHARED_ONLY = {"directionality": ("bidi",), "pooler_type": ("first_token_transform",)}
_ONLY: dict[str, tuple[Any, ...]] = {
    "model_type": ("bert",),
    "position_embedding_type": ("absolute",),
    "pruned_heads": ({}, None),
    **dict.fromkeys(("is_decoder", "is_encoder_decoder", "add_cross_attention"), (False,)),
    **dict.fromkeys(("cross_attention_hidden_size", "auto_map", "quantization_config", "per_layer_config"), (None,)),
    **SHARED_ONLY,
}

# Google's multilingual and Chinese releases have these; neither Google's code nor transformers reads them.
GOOGLE_IGNORED = frozenset({"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"}) | {
    "pooler_size_per_head",
    "do_lower_case",  # of the tokenizer; some released checkpoints have it here
}

# Keys that transformers writes into config.json and that do not change the encoder.
_IGNORED = GOOGLE_IGNORED | {
    *("_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_name_or_path", "name_or_path"),
    *("attn_implementation", "architectures", "transformers_version", "tokenizer_class", "torch_dtype", "dtype"),
    *("model_name", "revision", "sentence_transformers", "adapters_version", "xla_device", "torchscript"),
    "use_bfloat16",
    # Heads and training.
    *("classifier_dropout", "id2label", "label2id", "num_labels", "_num_labels", "problem_type", "finetuning_task"),
    *("gradient_checkpointing", "tie_word_embeddings", "tie_encoder_decoder", "tie_last_hidden_states"),
    *("task_specific_params", "tf_legacy_loss"),
    # Outputs of a call, and chunks.
    *("output_attentions", "output_hidden_states", "output_past", "return_dict", "use_cache", "use_return_dict"),
    *("chunk_size_feed_forward", "keys_to_ignore_at_inference"),
    # Special token ids; the tokenizer knows them.
    *("pad_token_id", "bos_token_id", "eos_token_id", "eos_token_ids", "sep_token_id", "cls_token_id"),
    *("mask_token_id", "unk_token_id", "decoder_start_token_id", "prefix"),
    # Text generation.
    *("bad_words_ids", "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping"),
    *("encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "forced_bos_token_id"),
    *("forced_eos_token_id", "length_penalty", "max_length", "min_length", "no_repeat_ngram_size"),
    *("num_beam_groups", "num_beams", "num_return_sequences", "output_scores", "remove_invalid_values"),
    *("repetition_penalty", "return_dict_in_generate", "suppress_tokens", "temperature", "top_k", "top_p"),
    *("typical_p",),
}


def read_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `BertConfig`; see `BertConfig.from_huggingface`."""
    owner = "BertConfig.from_huggingface"
    keys.check_mapping(owner, values)
    if "model_type" not in values and not all(str(n).startswith("Bert") for n in values.get("architectures") or ()):
        rule = "name BERT's classes where there is no `model_type`"
        raise ValueError(checks.message(owner, "architectures", rule, values["architectures"], keys.OTHER_MODEL))
    return named_fields(owner, values, names=_NAMES, only=_ONLY, ignored=_IGNORED, activations=_ACTIVATIONS)


def named_fields(
    owner: str,
    values: Mapping[str, Any],
    *,
    names: Mapping[str, str],
    only: Mapping[str, tuple[Any, ...]],
    ignored: frozenset[str],
    activations: Mapping[str, str],
) -> dict[str, Any]:
    """The fields by our names, every key checked.

    Args:
        owner: the public function that was called, for errors.
        values: the content of the file.
        names: key -> our field.
        only: key -> the values that are allowed.
        ignored: other keys that are allowed.
        activations: value of `hidden_act` -> our activation.
    """
    keys.check_only(owner, values, only)
    keys.check_known(owner, values, {*names, *only, *ignored})
    keys.check_present(owner, values, _REQUIRED)
    checks.one_of(owner, "hidden_act", values["hidden_act"], list(activations))
    fields = {names[key]: value for key, value in values.items() if key in names}
    return {**fields, "activation": activations[values["hidden_act"]]}


def written_values(config: BertConfig) -> dict[str, Any]:
    """The content of `config.json`; see `BertConfig.to_huggingface`."""
    if config.embedding_dim is not None:
        cure = "transformers' BERT has embeddings as wide as its hidden states. Save a `.keras` file."
        rule = "be None for HuggingFace"
        raise ValueError(checks.message("BertConfig.to_huggingface", "embedding_dim", rule, config.embedding_dim, cure))
    values = {key: getattr(config, name) for key, name in _NAMES.items() if name != "embedding_dim"}
    return {"model_type": "bert", **values, "hidden_act": _WRITTEN_ACTIVATIONS[config.activation]}
