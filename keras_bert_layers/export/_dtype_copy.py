"""A model in numbers of another format, beside the one that it is copied from."""

from __future__ import annotations

from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.layers.initializers import replaced_weights

_BACKBONE = "BertBackbone"


def copy_in_dtype(model: Any, dtype: str) -> Any:
    """A copy of a model whose backbones have another dtype policy, with the same weights in their number format.

    The layers round the backbones follow them; what they make in float32 under every policy stays float32. The weights
    go over one by one, so that besides both models there is never more than one weight in memory.

    Args:
        model: a model whose `get_config` holds its backbones, and from whose `from_config` it comes again.
        dtype: the policy's name.

    Returns:
        The copy, compiled with the defaults.

    Raises:
        ValueError: the model's weights are not those that its config makes.
    """
    with replaced_weights():
        copy = type(model).from_config(_with_backbones_in(dtype, model.get_config()))
    if [weight.shape for weight in copy.weights] != [weight.shape for weight in model.weights]:
        cure = "The model's weights are not those that `get_config` describes, as after `quantize`."
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
