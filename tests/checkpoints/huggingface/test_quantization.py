import json
import random

import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface.quantization import without_quantization

WEIGHTS = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel", "dynamic": False, "actorder": None}
GROUP = {"weights": WEIGHTS, "input_activations": None, "output_activations": None, "targets": ["Linear"]}
CONFIG = {
    **{"quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed"},
    **{"config_groups": {"group_0": GROUP}, "ignore": ["classifier"], "kv_cache_scheme": None, "sparsity_config": {}},
}


def checked(config):
    return without_quantization("config.json", {"a": 1, "quantization_config": config})


def test_weights_with_scales():
    assert checked(CONFIG) == checked(None) == without_quantization("config.json", {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quant_method": "bitsandbytes"}, r"must be of compressed-tensors\. Received: quant_method='bitsandbytes'\."),
        ({"config_groups": []}, r"must have `config_groups`"),
        ({"format": "pack-quantized"}, r"have a format of .*Received: format='pack-quantized'"),
        ({"sparsity_config": {"format": "sparse-bitmask"}}, "must have no sparsity_config"),
        ({"config_groups": {"a": {**GROUP, "input_activations": {"num_bits": 8}}}}, "set input_activations to null in"),
        ({"config_groups": {"a": {**GROUP, "weights": None}}}, "must describe the weights"),
        ({"config_groups": {"a": {**GROUP, "weights": {**WEIGHTS, "num_bits": 4}}}}, r"have num_bits of \(8,\)"),
        ({"config_groups": {"a": {**GROUP, "weights": {**WEIGHTS, "symmetric": False}}}}, "have symmetric of"),
    ],
)
def test_other_methods(tmp_path, changes, message):
    with pytest.raises(CheckpointError, match=message):
        without_quantization(tmp_path / "config.json", {"quantization_config": {**CONFIG, **changes}})


@pytest.mark.parametrize("config", ["awq", 3, []])
def test_no_config(config):
    with pytest.raises(CheckpointError, match=r"must be of compressed-tensors\. Received: quant_method="):
        checked(config)


def test_damaged_configs(tmp_path):
    """Values of any kind give the rest of the config or an error."""
    values = [None, True, 0, 8, 10**400, "x", [], [1], {}, {"weights": 1}, {"group_0": 3}, {"group_0": GROUP}]
    refused = 0
    for seed in range(200):
        rng = random.Random(seed)
        config = json.loads(json.dumps(CONFIG))
        group = config["config_groups"]["group_0"]
        for part in rng.choices([config, group, group["weights"]], k=2):
            part[rng.choice([*part, "new"])] = rng.choice(values)
        try:
            assert without_quantization(tmp_path, {"quantization_config": config}) == {}
        except CheckpointError:
            refused += 1
    assert 20 < refused < 200
