"""Converts a `bert_config.json` of google-research/bert to a `BertConfig` and back."""

from collections.abc import Mapping
from typing import Any

from keras_bert_layers._internal import checks, keys
from keras_bert_layers.checkpoints.checkpoint import check_plain_bert
from keras_bert_layers.checkpoints.huggingface import config_keys as huggingface
from keras_bert_layers.config import BertConfig

# google-research/bert, modeling.py, get_activation and gelu: these four names, and the tanh form of GELU.
_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh", "linear": "linear"}
# The inverse; both forms of GELU have one name there.
_WRITTEN_ACTIVATIONS = {"gelu_erf": "gelu", **{ours: name for name, ours in _ACTIVATIONS.items()}}


def config_from_google(values: Mapping[str, Any]) -> BertConfig:
    """Converts the content of a `bert_config.json` of google-research/bert to a `BertConfig`.

    Args:
        values: the parsed `bert_config.json`. Its "gelu" is the tanh form, its LayerNorm epsilon 1e-12.

    Raises:
        ValueError: if a key is missing, unknown, or has a value that this encoder does not implement.
    """
    owner = "config_from_google"
    keys.check_mapping(owner, values)
    keys.check_only(owner, values, huggingface.SHARED_ONLY)
    keys.check_known(owner, values, {*huggingface.SHARED_NAMES, *huggingface.SHARED_ONLY, *huggingface.GOOGLE_IGNORED})
    return BertConfig(**huggingface.named_fields(owner, values, huggingface.SHARED_NAMES, _ACTIVATIONS))


def config_to_google(config: BertConfig) -> dict[str, Any]:
    """Converts a config to the content of a `bert_config.json`, for google-research/bert and `config_from_google`.

    Google's format has one name for both forms of GELU, which its code computes in the tanh form, and no
    `layer_norm_epsilon`: `config_from_google` gives the tanh form and 1e-12. `embedding_size` is written only for a
    narrower embedding, which Google's own code does not have.

    Raises:
        ValueError: if Google's code does not have the activation, or the config is of a relative of BERT.

    Examples:
        >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
        >>> config_from_google(config_to_google(config)).activation
        'gelu_tanh'
    """
    owner = "config_to_google"
    check_plain_bert(owner, config, "Google")
    if config.activation not in _WRITTEN_ACTIVATIONS:
        rule = f"be one of {list(_WRITTEN_ACTIVATIONS)} for Google"
        cure = "Google's code has no others. Save a `.keras` file, or in HuggingFace's layout."
        raise ValueError(checks.message(owner, "activation", rule, config.activation, cure))
    values = {key: getattr(config, name) for key, name in sorted(huggingface.SHARED_NAMES.items())}
    if config.embedding_dim is None:
        del values["embedding_size"]
    return {**values, "hidden_act": _WRITTEN_ACTIVATIONS[config.activation]}


def config_there(config: BertConfig) -> BertConfig:
    """The config as Google's own code reads it back from its file; the other fields are fixed there."""
    return config_from_google(config_to_google(config))
