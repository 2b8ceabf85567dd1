"""What the keys of other people's BERT configs mean here: honoured, allowed with one value only, or ignored."""

from __future__ import annotations

from typing import Any

# transformers 5, activations.py: which of the two forms of GELU each word means there. "quick_gelu", "gelu_10" and
# "leaky_relu" (slope 0.01 there, another in Keras) are other functions and are refused.
HUGGINGFACE_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "swish": "silu",
    **{name: name for name in ("relu", "relu6", "silu", "mish", "tanh", "sigmoid", "linear")},
}

# The other way: of several words the one that transformers' own configs use.
TO_HUGGINGFACE_ACTIVATIONS = {
    "gelu_erf": "gelu",
    "gelu_tanh": "gelu_new",
    **{name: name for name in ("relu", "relu6", "silu", "mish", "tanh", "sigmoid", "linear")},
}

# google-research/bert, modeling.py, get_activation and gelu: these four words, and the tanh form of GELU.
GOOGLE_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh", "linear": "linear"}
# The other way; both forms of GELU are one word there.
TO_GOOGLE_ACTIVATIONS = {"gelu_erf": "gelu", **{ours: word for word, ours in GOOGLE_ACTIVATIONS.items()}}

# Both sources use these words; the value is ours.
GOOGLE_NAMES = {
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
# No checkpoint is read on a guess: a wrong head count, say, fits every weight and gives wrong numbers.
REQUIRED = tuple(list(GOOGLE_NAMES)[:8])

HUGGINGFACE_NAMES = {**GOOGLE_NAMES, "layer_norm_eps": "layer_norm_epsilon"}

OTHER_MODEL = "This package has BERT's own encoder only; such a model computes something else."

# Keys that may stand there only with a value under which the encoder is plain BERT.
HUGGINGFACE_ONLY = {
    "model_type": ("bert",),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (None,),
    "pruned_heads": ({}, None),
    "auto_map": (None,),
    "quantization_config": (None,),
    "per_layer_config": (None,),
    "directionality": ("bidi",),
    "pooler_type": ("first_token_transform",),
}
GOOGLE_ONLY = {"directionality": ("bidi",), "pooler_type": ("first_token_transform",)}

# Google's multilingual and Chinese releases carry these; neither Google's code nor transformers reads them.
GOOGLE_IGNORED = frozenset({"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"}) | {
    "pooler_size_per_head",
    "do_lower_case",  # of the tokenizer; some who release a checkpoint write it here
}

# keras_hub, models/bert/bert_backbone.py: these arguments, and one rate for both dropouts.
KERASHUB_NAMES = (
    *("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim"),
    *("dropout", "max_sequence_length", "num_segments"),
)
KERASHUB_REQUIRED = KERASHUB_NAMES[:5]
# The same file: no argument changes these two. Nor is there one for `initializer_range`.
KERASHUB_FIXED: dict[str, Any] = {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-12}
KERASHUB_IGNORED = ("name", "trainable")
# Keras's own frame round an object's arguments; keras_nlp is keras_hub's older name.
KERASHUB_FRAME = {
    "class_name": ("BertBackbone",),
    "registered_name": ("keras_hub>BertBackbone", "keras_nlp>BertBackbone"),
}
KERASHUB_FRAME_IGNORED = ("module", "build_config", "compile_config")

# Bookkeeping: what transformers writes into config.json that no number of the encoder depends on.
HUGGINGFACE_IGNORED = GOOGLE_IGNORED | {
    *("_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_name_or_path", "name_or_path"),
    *("attn_implementation", "architectures", "transformers_version", "tokenizer_class", "torch_dtype", "dtype"),
    *("model_name", "revision", "sentence_transformers", "adapters_version", "xla_device", "torchscript"),
    "use_bfloat16",
    # Heads and training.
    *("classifier_dropout", "id2label", "label2id", "num_labels", "_num_labels", "problem_type", "finetuning_task"),
    *("gradient_checkpointing", "tie_word_embeddings", "tie_encoder_decoder", "tie_last_hidden_states"),
    *("task_specific_params", "tf_legacy_loss"),
    # What a call gives back, and how it is cut into pieces.
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
