"""Converts the `config.json` of a KerasHub preset to a `BertConfig` and back."""

from collections.abc import Mapping
from typing import Any

from keras_bert_layers._internal import checks, keys
from keras_bert_layers.checkpoints.checkpoint import check_plain_bert
from keras_bert_layers.checkpoints.kerashub.objects import keras_object
from keras_bert_layers.config import BertConfig

# keras_hub, models/bert/bert_backbone.py: these arguments, and one rate for both dropouts.
_REQUIRED = ("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim")
_NAMES = (*_REQUIRED, "dropout", "max_sequence_length", "num_segments")
_IGNORED = ("name", "trainable")
# The same file: no argument changes these two, and there is none for `initializer_range`.
_FIXED: dict[str, Any] = {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-12}

# The keys with which Keras serializes an object; keras_nlp is keras_hub's older name.
_CLASS = {"class_name": ("BertBackbone",), "registered_name": ("keras_hub>BertBackbone", "keras_nlp>BertBackbone")}
_OTHER_KEYS = ("config", "module", "build_config", "compile_config")


def config_from_kerashub(values: Mapping[str, Any]) -> BertConfig:
    """Converts the content of the `config.json` of a KerasHub preset to a `BertConfig`.

    Args:
        values: the parsed `config.json`: a serialized `keras_hub.models.BertBackbone`, whose GELU is the tanh form and
            whose LayerNorm epsilon is 1e-12.

    Raises:
        ValueError: if a key is missing or unknown, or the file is of another class or of quantised weights.
    """
    owner = "config_from_kerashub"
    keys.check_mapping(owner, values)
    keys.check_known(owner, values, {*_CLASS, *_OTHER_KEYS})
    keys.check_present(owner, values, ("class_name", "config"))
    keys.check_only(owner, values, _CLASS)
    arguments = values["config"]
    keys.check_mapping(owner, arguments)
    keys.check_known(owner, arguments, {*_NAMES, *_IGNORED, "dtype"})
    keys.check_present(owner, arguments, _REQUIRED)
    dtype = arguments.get("dtype")
    if isinstance(dtype, Mapping) and dtype.get("class_name") != "DTypePolicy":
        raise ValueError(checks.message(owner, "dtype", "be a DTypePolicy", dtype, "Quantised weights cannot be read."))
    fields = {key: arguments[key] for key in _NAMES if key in arguments}
    attention = {"attention_dropout": fields["dropout"]} if "dropout" in fields else {}
    return BertConfig(**{**_FIXED, **fields, **attention})


def config_to_kerashub(config: BertConfig) -> dict[str, Any]:
    """Converts a config to the `config.json` of a KerasHub preset, which `config_from_kerashub` reads back.

    KerasHub's BERT has no `activation`, `layer_norm_epsilon`, `attention_dropout` or `initializer_range`.

    Raises:
        ValueError: if `embedding_dim` is set, the activation is not a GELU, or the config is of a relative of BERT:
            KerasHub has no such BERT.
    """
    owner = "config_to_kerashub"
    check_plain_bert(owner, config, "KerasHub")
    if config.embedding_dim is not None:
        raise ValueError(checks.message(owner, "embedding_dim", "be None for KerasHub", config.embedding_dim))
    if config.activation not in ("gelu_erf", "gelu_tanh"):
        raise ValueError(checks.message(owner, "activation", "be a GELU for KerasHub", config.activation))
    return keras_object("BertBackbone", {name: getattr(config, name) for name in _NAMES})


def config_there(config: BertConfig) -> BertConfig:
    """The config as KerasHub's own code reads it back from its file; the other fields are fixed there."""
    return config_from_kerashub(config_to_kerashub(config))
