"""NomicBERT's two forms of `config.json` and of the names of tensors."""

import json
import re
import shutil

import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig, BertMaskedLM
from keras_bert_layers.checkpoints import CheckpointError, load_backbone, load_task, save_huggingface
from keras_bert_layers.checkpoints.files.safetensors_file import SafetensorsFile, write_safetensors
from keras_bert_layers.checkpoints.files.tensor_views import TensorView
from keras_bert_layers.checkpoints.huggingface.config_keys import ignored_keys, read_fields
from keras_bert_layers.checkpoints.huggingface.families.nomic_bert import NOMIC_BERT
from keras_bert_layers.layers import EncoderParts, RotaryPositions

TODAYS = {
    "model_type": "nomic_bert",
    "vocab_size": 97,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 40,
    "layer_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 50.0},
}
OLDER = {
    **{"model_type": "nomic_bert", "vocab_size": 97, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_inner": 20},
    **{"n_positions": 40, "layer_norm_epsilon": 1e-5, "activation_function": "swiglu", "rotary_emb_base": 50},
    **{"rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "qkv_proj_bias": False, "prenorm": False},
}


def read(values):
    config = BertConfig(**read_fields(values))
    return config, NOMIC_BERT.parts.read(values, config)


def model():
    config, parts = read(TODAYS)
    made = BertMaskedLM(BertBackbone(config, parts=parts))
    rng = np.random.default_rng(2)
    for weight in made.weights:
        weight.assign(rng.normal(0.5, 0.3, weight.shape))
    return made


def test_both_forms_of_the_config_are_one():
    (config, parts), (older, older_parts) = read(TODAYS), read(OLDER)
    assert config == older
    assert (config.activation, config.dropout, config.num_segments, config.max_sequence_length) == ("silu", 0.0, 2, 40)
    assert parts.positions.base == older_parts.positions.base == 50.0
    assert (parts.use_bias, parts.attention.use_bias, parts.feed_forward.use_bias) == (True, False, False)
    assert read({**TODAYS, **OLDER, "n_positions": 64})[0].max_sequence_length == 64
    assert ignored_keys({**TODAYS, **OLDER}) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("qkv_proj_bias", True), ("mlp_fc1_bias", True), ("prenorm", True), ("use_rms_norm", True)),
        *(("rotary_emb_fraction", 0.5), ("rotary_emb_interleaved", True), ("rotary_scaling_factor", 2.0)),
        *(("rotary_emb_base", 60), ("n_head", 4), ("activation_function", "gelu"), ("head_dim", 3)),
        *(("moe_every_n_layers", 2), ("num_experts", 8), ("rope_scaling", {"type": "ntk", "factor": 2.0})),
        *(("rope_parameters", {"rope_type": "dynamic", "factor": 2.0}), ("max_position_embeddings", 10**9)),
    ],
)
def test_what_computes_something_else_is_refused(key, value):
    with pytest.raises(ValueError, match=re.escape(key)):
        read({**TODAYS, **{name: OLDER[name] for name in ("n_head", "rotary_emb_base")}, key: value})


def test_written_in_the_names_of_files_and_read_in_those_of_modules(tmp_path):
    ours = model()
    save_huggingface(ours, tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    stored = SafetensorsFile(shutil.copy(path, tmp_path / "stored.safetensors"))
    assert stored.infos["nomic_bert.encoder.layers.1.attn.Wqkv.weight"].shape == (36, 12)
    assert stored.infos["nomic_bert.encoder.layers.1.mlp.fc12.weight"].shape == (20, 12)
    assert "nomic_bert.emb_ln.bias" in stored.infos
    assert sum("pooler" in name for name in stored.infos) == 0
    assert same(load_task(tmp_path / "model", preprocessor=None), ours)

    modules = NOMIC_BERT.names.of_modules(stored)
    assert "nomic_bert.layers.1.self_attn.v_proj.weight" in modules.infos
    assert NOMIC_BERT.names.of_files(modules).infos == stored.infos
    write_safetensors(tmp_path / "modules.safetensors", modules)
    path.write_bytes((tmp_path / "modules.safetensors").read_bytes())
    assert same(load_task(tmp_path / "model", preprocessor=None), ours)

    # The oldest files have another prefix.
    renamed = {name.replace("nomic_bert.", "bert."): (stored, name) for name in stored.infos}
    write_safetensors(tmp_path / "oldest.safetensors", TensorView(renamed))
    path.write_bytes((tmp_path / "oldest.safetensors").read_bytes())
    assert same(load_task(tmp_path / "model", preprocessor=None), ours)


def same(one, other):
    """Whether two models have equal weights, but for the pooler, which a masked language model's files lack."""
    pairs = [(a, b) for a, b in zip(one.weights, other.weights, strict=True) if "pooler" not in a.path]
    return all(np.array_equal(a, b) for a, b in pairs)


def test_a_merged_tensor_of_another_size_is_refused_under_its_name(tmp_path):
    save_huggingface(model().backbone, tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "hidden_size": 15}))
    with pytest.raises(CheckpointError, match=r"must have shape"):
        load_backbone(tmp_path / "model")


def test_biases_of_its_own_are_written_only_where_the_family_has_them(tmp_path):
    config, parts = read(TODAYS)
    others = EncoderParts(positions=RotaryPositions(base=50.0, halves=True), feed_forward=parts.feed_forward)
    with pytest.raises(ValueError, match="No model type of transformers has these parts"):
        save_huggingface(BertBackbone(config, parts=others), tmp_path / "model")
