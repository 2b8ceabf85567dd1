"""The fields of `BertConfig` in a `bert_config.json` of google-research/bert."""

from __future__ import annotations

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


def read_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `BertConfig`; see `BertConfig.from_google`."""
    owner = "BertConfig.from_google"
    keys.check_mapping(owner, values)
    keys.check_only(owner, values, huggingface.SHARED_ONLY)
    keys.check_known(owner, values, {*huggingface.SHARED_NAMES, *huggingface.SHARED_ONLY, *huggingface.GOOGLE_IGNORED})
    return huggingface.named_fields(owner, values, huggingface.SHARED_NAMES, _ACTIVATIONS)


def written_values(config: BertConfig) -> dict[str, Any]:
    """The content of `bert_config.json`; see `BertConfig.to_google`."""
    check_plain_bert("BertConfig.to_google", config, "Google")
    if config.activation not in _WRITTEN_ACTIVATIONS:
        rule = f"be one of {list(_WRITTEN_ACTIVATIONS)} for Google"
        cure = "Google's code has no others. Save a `.keras` file, or in HuggingFace's layout."
        raise ValueError(checks.message("BertConfig.to_google", "activation", rule, config.activation, cure))
    values = {key: getattr(config, name) for key, name in sorted(huggingface.SHARED_NAMES.items())}
    if config.embedding_dim is None:
        del values["embedding_size"]
    return {**values, "hidden_act": _WRITTEN_ACTIVATIONS[config.activation]}
