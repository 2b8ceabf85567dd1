"""GTE's configs, of transformers and of the code before it, and the names of its tensors."""

import re

import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig, BertMaskedLM
from keras_bert_layers.checkpoints import load_task, save_huggingface
from keras_bert_layers.checkpoints.files.safetensors_file import SafetensorsFile, write_safetensors
from keras_bert_layers.checkpoints.files.tensor_views import TensorView
from keras_bert_layers.checkpoints.huggingface.config_keys import ignored_keys, read_fields
from keras_bert_layers.checkpoints.huggingface.families.gte import GTE

TODAYS = {
    "model_type": "gte",
    "vocab_size": 97,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 40,
}
FORMER = {
    **TODAYS,
    **{"model_type": "new", "architectures": ["NewModel"], "rope_theta": 500.0, "type_vocab_size": 0},
    **{"rope_scaling": {"type": "ntk", "factor": 8.0}, "position_embedding_type": "rope", "pack_qkv": True},
    **{"layer_norm_type": "layer_norm", "logn_attention_scale": False, "logn_attention_clip1": False},
    **{"unpad_inputs": False, "use_memory_efficient_attention": False},
}


def read(values):
    config = BertConfig(**read_fields(values))
    return config, GTE.parts.read(values, config)


def test_both_forms_of_the_config():
    (config, parts), (former, former_parts) = read(TODAYS), read(FORMER)
    assert (config.num_segments, former.num_segments, config.attention_dropout) == (1, 0, 0.0)
    assert (parts.positions.base, parts.positions.interpolation) == (160_000.0, 1.0)
    assert (former_parts.positions.base, former_parts.positions.interpolation) == (4000.0, 8 ** (2 / 4))
    assert (parts.feed_forward.use_bias, parts.feed_forward.gate_has_bias) == (True, False)
    assert parts.feed_forward.dropout == config.dropout == 0.1
    assert ignored_keys(FORMER) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("position_embedding_type", "absolute"), ("layer_norm_type", "rms_norm"), ("pack_qkv", False)),
        *(("logn_attention_scale", True), ("head_dim", 3), ("max_position_embeddings", 10**9)),
        ("rope_scaling", {"type": "ntk", "factor": 8.0, "mixed_b": 0.6}),
        *(("rope_scaling", {"type": "ntk", "factor": factor}) for factor in (None, 0.5, float("inf"), "8")),
        *(("rope_scaling", {"type": "dynamic", "factor": 2.0}), ("rope_scaling", [8.0])),
        ("rope_parameters", {"rope_type": "default", "rope_theta": 500.0}),
    ],
)
def test_what_computes_something_else_is_refused(key, value):
    with pytest.raises((ValueError, TypeError), match=re.escape(key)):
        read({**FORMER, key: value})


def test_former_names_are_read_and_todays_written(tmp_path):
    config, parts = read(FORMER)
    ours = BertMaskedLM(BertBackbone(config, parts=parts))
    rng = np.random.default_rng(2)
    for weight in ours.weights:
        weight.assign(rng.normal(0.5, 0.3, weight.shape))
    path = save_huggingface(ours, tmp_path / "model") / "model.safetensors"
    stored = SafetensorsFile(path)
    assert stored.infos["gte.encoder.layer.1.attention.qkv_proj.weight"].shape == (36, 12)
    assert stored.infos["gte.encoder.layer.1.mlp.up_gate_proj.weight"].shape == (40, 12)
    assert not {name for name in stored.infos if "up_gate_proj.bias" in name or "token_type" in name}
    assert {
        "gte.encoder.layer.1.mlp.down_proj.bias",
        "lm_head.norm.bias",
        "lm_head.decoder.bias",
    } <= stored.infos.keys()

    renamed = {re.sub("^gte", "new", name): (stored, name) for name in stored.infos}
    write_safetensors(tmp_path / "former.safetensors", TensorView(renamed))
    path.write_bytes((tmp_path / "former.safetensors").read_bytes())
    again = load_task(tmp_path / "model", preprocessor=None)
    for one, other in zip(ours.weights, again.weights, strict=True):
        assert "pooler" in one.path or np.array_equal(one, other), one.path
    assert again.backbone.parts.positions.interpolation == 8 ** (2 / 4)
