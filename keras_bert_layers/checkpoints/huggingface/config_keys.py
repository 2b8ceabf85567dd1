"""Converts a HuggingFace `config.json` to a `BertConfig` and back: each key is read, refused, ignored or unknown."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks, keys
from keras_bert_layers._internal.other_libraries import FIELDS
from keras_bert_layers.checkpoints.huggingface.families.family import READER
from keras_bert_layers.checkpoints.huggingface.families.table import checked_family, family_of, stated_family
from keras_bert_layers.checkpoints.weights.reports import UNKNOWN
from keras_bert_layers.config import ACTIVATIONS, BertConfig

if TYPE_CHECKING:
    from keras_bert_layers.layers.encoder_parts import EncoderParts

_SAME_NAME = tuple(name for name in ACTIVATIONS if name not in ("gelu_erf", "gelu_tanh", "elu", "softplus"))

# transformers 5, activations.py: which of the two forms of GELU each name means there.
_ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), "gelu_erf"),
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_accurate", "gelu_pytorch_tanh", "gelu_python_tanh"), "gelu_tanh"),
    "swish": "silu",
    **{name: name for name in _SAME_NAME},
}
# The inverse, with the names that transformers' own configs use.
_WRITTEN_ACTIVATIONS = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new", **{name: name for name in _SAME_NAME}}

# Google's files have these keys too.
SHARED_NAMES = {key: name for key, name in FIELDS.items() if key != "layer_norm_eps"}
# These keys have no default: a wrong head count, for example, fits every weight and gives wrong outputs.
_REQUIRED = list(SHARED_NAMES)[:8]

# Keys that are allowed only with a value for which the encoder is plain BERT.
SHARED_ONLY = {"directionality": ("bidi",), "pooler_type": ("first_token_transform",)}
_ONLY: dict[str, tuple[Any, ...]] = {
    "model_type": ("bert",),
    "position_embedding_type": ("absolute",),
    "pruned_heads": ({}, None),
    **dict.fromkeys(("is_decoder", "is_encoder_decoder", "add_cross_attention"), (False,)),
    **dict.fromkeys(("cross_attention_hidden_size", "quantization_config", "per_layer_config"), (None,)),
    **SHARED_ONLY,
}

# Why a value of these keys is refused.
_REASONS = {
    "quantization_config": "The weights are quantized, which is not implemented.",
    **dict.fromkeys(
        ("is_decoder", "is_encoder_decoder", "add_cross_attention"),
        "A decoder sees only the tokens before each token; this package has BERT's own encoder, which sees all.",
    ),
    "position_embedding_type": "Relative positions change the attention, and are not implemented.",
    "pruned_heads": "Blocks with fewer heads than others are not implemented.",
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
    *("use_bfloat16", "sbert_ce_default_activation_function"),
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

# Keys that other programs write, which no BERT of transformers reads: they are lines in the report.
_NOT_READ = {
    **dict.fromkeys(("cell", "structure", "pre_trained", "training", "emb_size"), "of TinyBERT's distillation"),
    **dict.fromkeys(("language", "name", "split", "transformers.js_config", "binary_labels"), "a description"),
    **dict.fromkeys(("auto_map", "trust_remote_code"), "a checkpoint's own code is never run"),
    "mlp_dropout": "of training",
    "num_rnn_layer": "of a layer after the encoder",
}
_NOT_READ_BEGINNINGS = {"rnn": "of a layer after the encoder", "summary_": "of a head that BERT does not have"}


def config_from_huggingface(values: Mapping[str, Any], *, strict: bool = False) -> BertConfig:
    """Converts the content of a HuggingFace `config.json` to a `BertConfig`.

    Every key is honoured, or is known not to change the encoder (special token ids, labels, settings of text
    generation, ...); a warning names all others. Older files have no `model_type`; they are read as BERT.

    Args:
        values: the parsed `config.json`; keys that may be absent default as in transformers.
        strict: whether unknown keys are an error.

    Raises:
        ValueError: if a key is missing, or has a value that this encoder does not implement; if the encoder has parts
            that are not BERT's, which a config does not hold; if a key is unknown and `strict` is True.

    Examples:
        >>> values = {"model_type": "bert", "vocab_size": 30522, "hidden_size": 128, "num_hidden_layers": 2,
        ...           "num_attention_heads": 2, "intermediate_size": 512, "hidden_act": "gelu_new",
        ...           "max_position_embeddings": 512, "type_vocab_size": 2}
        >>> config_from_huggingface(values).activation
        'gelu_tanh'
    """
    fields = read_fields(values)
    if checked_family(values).parts.read(values, BertConfig(**fields)) is not None:
        cure = "A config does not hold its other parts. `load_backbone(source)` has both, as `config` and `parts`."
        raise ValueError(checks.message(READER, "model_type", "have BERT's own parts", values["model_type"], cure))
    unknown = {key: values[key] for key, reason in ignored_keys(values).items() if reason == UNKNOWN}
    known = {*FIELDS, *_ONLY, *_IGNORED}
    if strict:
        keys.check_known(READER, unknown, known)
    if unknown:
        words = keys.described(unknown, known)
        warnings.warn(f"`{READER}`: some keys are unknown, and are not read: {words}.", stacklevel=2)
    return BertConfig(**fields)


def config_to_huggingface(config: BertConfig, parts: EncoderParts | None = None) -> dict[str, Any]:
    """Converts a config to the encoder's part of a HuggingFace `config.json`.

    `config_from_huggingface` reads it back without loss, if there are no other parts.

    Args:
        config: the config.
        parts: the encoder's parts, such as MPNet's; None for BERT's own.

    Raises:
        ValueError: if `embedding_dim` is set, as transformers' BERT has no narrower embedding; if it does not have the
            activation.

    Examples:
        >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
        >>> values = config_to_huggingface(config)
        >>> values["hidden_act"], config_from_huggingface(values) == config
        ('gelu', True)
    """
    checks.one_of("config_to_huggingface", "config.activation", config.activation, list(_WRITTEN_ACTIVATIONS))
    values = {key: getattr(config, name) for key, name in FIELDS.items()}
    values["hidden_act"] = _WRITTEN_ACTIVATIONS[config.activation]
    family = family_of(config, parts)
    if family.pooler_key:
        values[family.pooler_key] = _WRITTEN_ACTIVATIONS.get(config.pooler_activation)
    stated = {} if parts is None else family.parts.written(parts, config) or {}
    return {**family.own_values("config_to_huggingface", values, config), **stated}


def read_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `BertConfig` by a `config.json`, without a look at unknown keys."""
    keys.check_mapping(READER, values)
    family = checked_family(values)
    bert_values = family.bert_values(READER, values)
    keys.check_only(READER, bert_values, _ONLY, _REASONS)
    pooler = values.get(family.pooler_key, "gelu")
    checks.one_of(READER, family.pooler_key, pooler, list(_ACTIVATIONS))
    if values.get("auto_map") is not None:
        warnings.warn(
            f"`{READER}`: `auto_map` names code of the checkpoint's own, which is never run. The model is read as a "
            f"{family.title}, by the other keys. Compare its outputs with those of that code once.",
            stacklevel=2,
        )
    return {
        **named_fields(READER, bert_values, FIELDS, _ACTIVATIONS),
        "position_offset": family.position_offset(READER, values),
        "pooler_activation": _ACTIVATIONS[pooler] if family.pooler_key else family.pooler_activation,
    }


def ignored_keys(values: Mapping[str, Any]) -> dict[str, str]:
    """Key -> the reason why it is not read, for keys that other programs than transformers write.

    Examples:
        >>> ignored_keys({"model_type": "bert", "emb_size": 312, "rnn_dim": 8, "my_key": 1})
        {'emb_size': "of TinyBERT's distillation", 'rnn_dim': 'of a layer after the encoder', 'my_key': 'unknown'}
    """
    family = stated_family(values)
    bert_values = values if family is None else family.bert_values(READER, values)
    others = [key for key in bert_values if key not in {*FIELDS, *_ONLY, *_IGNORED}]
    return {key: _reason(str(key)) for key in others}


def _reason(key: str) -> str:
    beginnings = (reason for beginning, reason in _NOT_READ_BEGINNINGS.items() if key.startswith(beginning))
    return _NOT_READ.get(key) or next(beginnings, UNKNOWN)


def named_fields(
    owner: str, values: Mapping[str, Any], names: Mapping[str, str], activations: Mapping[str, str]
) -> dict[str, Any]:
    """The fields by our names.

    Args:
        owner: the public function that was called, for errors.
        values: the content of the file.
        names: key -> our field.
        activations: value of `hidden_act` -> our activation.
    """
    keys.check_present(owner, values, _REQUIRED)
    checks.one_of(owner, "hidden_act", values["hidden_act"], list(activations))
    fields = {names[key]: value for key, value in values.items() if key in names}
    return {**fields, "activation": activations[values["hidden_act"]]}
