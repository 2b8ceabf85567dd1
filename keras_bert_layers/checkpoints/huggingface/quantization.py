"""`without_quantization`: the check of `quantization_config` in a `config.json`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import shown

KEY = "quantization_config"

_METHOD = "compressed-tensors"
_FORMATS = ("float-quantized", "int-quantized", "naive-quantized")
# compressed_tensors, quantization/quant_args.py: the settings of weights that are a code times a scale.
_WEIGHTS: dict[str, tuple[Any, ...]] = {
    "num_bits": (8,),
    "type": ("float", "int"),
    "symmetric": (True,),
    "strategy": ("tensor", "channel", "group"),
    "dynamic": (False, None),
    "actorder": (None,),
    "block_structure": (None,),
}


def without_quantization(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a `config.json` without `quantization_config`, if `ScaledTensors` reads such weights.

    Args:
        path: the file, for errors.
        values: its content.

    Raises:
        CheckpointError: the weights are quantized in another way, or activations are quantized too.
    """
    found = values.get(KEY)
    rest = {key: value for key, value in values.items() if key != KEY}
    if found is None:
        return rest
    method = found.get("quant_method") if isinstance(found, Mapping) else found
    if method != _METHOD:
        raise _refusal(path, f"be of {_METHOD}", f"quant_method={shown(method)}")
    groups = found.get("config_groups")
    if not isinstance(groups, Mapping) or not all(isinstance(group, Mapping) for group in groups.values()):
        raise _refusal(path, "have `config_groups`", f"config_groups={shown(groups)}")
    for settings in (found, *groups.values()):
        if settings.get("format", _FORMATS[0]) not in _FORMATS:
            raise _refusal(path, f"have a format of {_FORMATS}", f"format={shown(settings['format'])}")
    for key in ("kv_cache_scheme", "sparsity_config", "transform_config"):
        if found.get(key):
            raise _refusal(path, f"have no {key}", f"{key}={shown(found[key])}")
    for group in groups.values():
        _check_group(path, group)
    return rest


def _check_group(path: Path, group: Mapping[str, Any]) -> None:
    for key in ("input_activations", "output_activations"):
        if group.get(key):
            cure = f"To compute with activations as they are, set {key} to null in {path.name}."
            raise _refusal(path, "quantize weights only", f"{key}={shown(group[key])}", cure)
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        raise _refusal(path, "describe the weights", f"weights={shown(weights)}")
    for key, allowed in _WEIGHTS.items():
        if key in weights and not any(weights[key] is one or weights[key] == one for one in allowed):
            raise _refusal(path, f"have {key} of {allowed}", f"{key}={shown(weights[key])}")


def _refusal(path: Path, rule: str, received: str, cure: str = "") -> CheckpointError:
    cure = cure or (
        "Use the weights before quantization; or where the method's library is installed, load the model with "
        "transformers and call model.dequantize().save_pretrained(NEW_DIRECTORY)."
    )
    return CheckpointError(f"{path}: `{KEY}` must {rule}. Received: {received}. {cure}")
