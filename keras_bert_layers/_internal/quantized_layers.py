"""Quantization of models by Keras, and what a config says of it, so that a `.keras` file loads again."""

from __future__ import annotations

import warnings
from typing import Any

import keras

from keras_bert_layers._internal import checks

#: The modes whose weights a layer of the same config has again when it is quantized in the same way. "gptq" and "awq"
#: calibrate on data, and their state is no part of a config.
MODES = ("int8", "int4", "float8")

_KEY = "quantized_layers"


def quantize(model: keras.Model, mode: str | None = None, config: Any = None, **options: Any) -> None:
    """Quantizes the dense layers, as `keras.Model.quantize`, without a warning for each layer that has no weights.

    Args:
        model: the model.
        mode: one of `MODES`; that of `config` if None.
        config: Keras's quantization config.
        **options: further arguments of `keras.Model.quantize`.

    Raises:
        ValueError: another mode.
    """
    mode = getattr(config, "mode", None) if mode is None else mode
    cure = "Keras's other modes calibrate on data, which a `.keras` file does not hold; use int4 for as few bits."
    checks.one_of(type(model).__name__, "mode", mode, MODES, cure)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Layer .* does not have a `quantize` method", UserWarning)
        keras.Model.quantize(model, mode, config=config, **options)


def with_quantized_layers(model: keras.Model, config: dict[str, Any]) -> dict[str, Any]:
    """The config of a model, with the position, mode and config of each quantized layer if there is one."""
    quantized = [
        [index, layer.quantization_mode, keras.saving.serialize_keras_object(layer.quantization_config)]
        for index, layer in enumerate(model._flatten_layers())
        if _is_quantized(layer)
    ]
    return {**config, _KEY: quantized} if quantized else config


def made_quantized(model: Any, config: dict[str, Any]) -> Any:
    """Quantizes a model with initial weights as `with_quantized_layers` described it."""
    layers = list(model._flatten_layers())
    for index, mode, layer_config in config.get(_KEY, ()):
        if not _is_quantized(layers[index]):  # a backbone in a task has quantized its own layers
            layers[index].quantize(mode, config=keras.saving.deserialize_keras_object(layer_config))
    return model


def constructor_config(config: dict[str, Any]) -> dict[str, Any]:
    """A config without the quantized layers."""
    return {key: value for key, value in config.items() if key != _KEY}


def _is_quantized(layer: Any) -> bool:
    return isinstance(layer, keras.layers.Dense) and layer.quantization_mode is not None
