"""Copies of a model with another dtype policy."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.layers.initializers import replaced_weights

_BACKBONE = "BertBackbone"


def copy_in_dtype(model: Any, dtype: str) -> Any:
    """Copies a model, its backbones with another dtype policy, and converts the weights.

    The other layers follow the backbones; weights that are float32 under every policy stay float32. Weights are copied
    one by one, so that memory holds both models and one weight.

    Args:
        model: a model that `from_config` makes from its `get_config`, with the backbones in the config.
        dtype: name of the policy.

    Returns:
        The copy, compiled with the defaults.

    Raises:
        ValueError: the model's weights differ from those that its config makes.
    """
    with replaced_weights():
        copy = type(model).from_config(_with_backbones_in(dtype, model.get_config()))
    if [weight.shape for weight in copy.weights] != [weight.shape for weight in model.weights]:
        cure = "The model's weights differ from those that `get_config` describes, as after `quantize`."
        raise ValueError(checks.message("export", "dtype", "be None", dtype, cure))
    for ours, theirs in zip(copy.weights, model.weights, strict=True):
        ours.assign(theirs)
    return copy


def _with_backbones_in(dtype: str, config: Any) -> Any:
    """A config with the dtype of every backbone in it replaced."""
    if isinstance(config, list):
        return [_with_backbones_in(dtype, part) for part in config]
    if not isinstance(config, dict):
        return config
    config = {key: _with_backbones_in(dtype, part) for key, part in config.items()}
    if config.get("class_name") == _BACKBONE:
        config["config"]["dtype"] = dtype
    return config
