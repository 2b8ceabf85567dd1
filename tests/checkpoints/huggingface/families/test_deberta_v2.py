"""DeBERTa's keys of `config.json`, the names of its tensors, and both names of its masked language model's head."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, BertMaskedLM
from keras_bert_layers.checkpoints import CheckpointError, load_backbone, load_report, load_task, save_huggingface
from keras_bert_layers.checkpoints.files.safetensors_file import SafetensorsFile, write_safetensors
from keras_bert_layers.checkpoints.files.tensor_views import TensorView
from keras_bert_layers.checkpoints.huggingface.config_keys import ignored_keys, read_fields
from keras_bert_layers.checkpoints.huggingface.families.deberta_v2 import DEBERTA_V2
from keras_bert_layers.layers import TokenConvolution

V3 = {
    **{"model_type": "deberta-v2", "vocab_size": 97, "hidden_size": 12, "num_hidden_layers": 2, "hidden_act": "gelu"},
    **{"num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 40, "type_vocab_size": 0},
    **{"relative_attention": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True},
    **{"pos_att_type": "p2c|c2p", "layer_norm_eps": 1e-7, "max_relative_positions": -1},
    **{"position_biased_input": False, "pooler_hidden_act": "gelu_new", "pooler_hidden_size": 12, "pooler_dropout": 0},
}
V2 = {**V3, "position_buckets": -1, "norm_rel_ebd": "none", "share_att_key": False, "position_biased_input": True}


def read(values):
    config = BertConfig(**read_fields(values))
    return config, DEBERTA_V2.parts.read(values, config)


def model(make, values=V3):
    config, parts = read(values)
    made = make(BertBackbone(config, parts=parts))
    rng = np.random.default_rng(2)
    for weight in made.weights:
        weight.assign(rng.normal(0.5, 0.3, weight.shape))
    return made


def same(one, other):
    pairs = zip(one.weights, other.weights, strict=True)
    return all(np.array_equal(a, b) for a, b in pairs if "pooler" not in a.path)


def test_keys():
    config, parts = read(V3)
    assert (config.pooler_activation, config.num_segments, config.layer_norm_epsilon) == ("gelu_tanh", 0, 1e-7)
    positions, attention = parts.positions, parts.attention
    assert (positions.span, positions.max_distance, positions.normalize) == (8, 40, True)
    assert (attention.shares_projections, attention.dropout, attention.vector_dropout) == (True, 0.1, 0.1)
    assert (attention.content_to_position, attention.position_to_content) == (True, True)
    config, parts = read({**V2, "pos_att_type": ["c2p"], "max_relative_positions": 7})
    assert (parts.positions.span, parts.positions.normalize, parts.positions.keeps_position_embedding) == (
        7,
        False,
        True,
    )
    assert parts.attention.own_projections == ["position_key"]
    config, parts = read({**V2, "embedding_size": 6, "conv_kernel_size": 3, "conv_act": "gelu_new"})
    assert (config.embedding_dim, parts.projects_first) == (6, True)
    assert (parts.convolution.kernel_size, parts.convolution.activation) == (3, "gelu_tanh")
    assert DEBERTA_V2.parts.written(parts, config)["conv_act"] == "gelu_new"
    for other in (TokenConvolution(3, activation="silu"), TokenConvolution(3, dropout=0.3)):
        assert DEBERTA_V2.parts.written(dataclasses.replace(parts, convolution=other), config) is None
    # What transformers takes where a key is absent.
    few = {key: value for key, value in V3.items() if not key.startswith(("pooler", "type", "layer_norm", "pos_att"))}
    config, parts = read(few)
    assert (config.pooler_activation, config.num_segments, config.layer_norm_epsilon) == ("gelu_erf", 0, 1e-7)
    assert (parts.attention.content_to_position, parts.attention.position_to_content) == (False, False)
    assert ignored_keys({**V2, "legacy": True, "conv_act": "gelu", "padding_idx": 0}) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("relative_attention", False), ("conv_kernel_size", 2), ("conv_groups", 3), ("pooler_dropout", 0.1)),
        *(("pos_att_type", "p2p"), ("pos_att_type", ["P2C"]), ("norm_rel_ebd", "batch_norm"), ("share_att_key", "yes")),
        *(("position_buckets", 1), ("position_buckets", 80), ("max_relative_positions", 2**30)),
        *(("attention_head_size", 3), ("pooler_hidden_size", 6), ("pooler_hidden_act", "geglu")),
    ],
)
def test_what_computes_something_else_is_refused(key, value):
    key_of_error = "max_relative_positions" if (key, value) == ("position_buckets", 80) else key
    with pytest.raises((ValueError, TypeError), match=re.escape(f"`{key_of_error}`")):
        read({**V3, key: value})


def test_a_model_without_relative_attention_is_refused():
    with pytest.raises(ValueError, match="`relative_attention` must be True"):
        read({key: value for key, value in V3.items() if key != "relative_attention"})


@pytest.mark.parametrize("values", [V3, V2], ids=["v3", "v2"])
def test_written_and_read_back(values, tmp_path):
    ours = model(lambda backbone: BertClassifier(backbone, 3, dropout=0.3), values)
    save_huggingface(ours, tmp_path / "model")
    stored = SafetensorsFile(tmp_path / "model" / "model.safetensors").infos
    heads = {name for name in stored if not name.startswith("deberta.")}
    assert heads == {f"{layer}.{part}" for layer in ("pooler.dense", "classifier") for part in ("weight", "bias")}
    assert ("deberta.encoder.LayerNorm.bias" in stored) == (values is V3)
    assert ("deberta.encoder.layer.1.attention.self.pos_query_proj.bias" in stored) == (values is V2)
    assert stored["deberta.encoder.rel_embeddings.weight"].shape == ((16, 12) if values is V3 else (80, 12))
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    written = {**values, "max_relative_positions": 40, "pos_att_type": ["c2p", "p2c"], "cls_dropout": 0.3}
    assert {key: config[key] for key in written} == written
    assert same(load_task(tmp_path / "model", preprocessor=None), ours)


def test_the_released_head_of_masked_words(tmp_path):
    ours = model(BertMaskedLM)
    save_huggingface(ours, tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    stored = SafetensorsFile(shutil.copy(path, tmp_path / "stored.safetensors"))
    released = {
        name.replace("cls.predictions.transform.", "lm_predictions.lm_head.").replace(
            "cls.predictions.bias", "lm_predictions.lm_head.bias"
        ): (stored, name)
        for name in stored.infos
    }
    assert sum(name.startswith("lm_predictions.lm_head.") for name in released) == 5
    others = {"mask_predictions.dense.bias", "deberta.embeddings.position_embeddings.weight"}
    released |= dict.fromkeys(others, (stored, "deberta.embeddings.LayerNorm.bias"))
    write_safetensors(path, TensorView(released))
    again = load_task(tmp_path / "model", preprocessor=None)
    assert same(again, ours)
    assert {name.removeprefix("deberta.") for name in load_report(again).ignored} == {
        name.removeprefix("deberta.") for name in others
    }
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps({**config, "position_biased_input": True}))
    with pytest.raises(CheckpointError, match="position_embeddings"):
        load_backbone(tmp_path / "model")


def test_sizes_are_compared_before_a_model_is_made(tmp_path):
    save_huggingface(model(BertMaskedLM), tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps({**config, "position_buckets": 12}))
    with pytest.raises(CheckpointError, match=r"rel_embeddings.*must have shape \(24, 12\)"):
        load_backbone(tmp_path / "model")
    convolved = model(BertMaskedLM, {**V3, "conv_kernel_size": 3})
    config = json.loads((save_huggingface(convolved, tmp_path / "other") / "config.json").read_text())
    assert (config["conv_kernel_size"], config["conv_act"]) == (3, "tanh")
    assert same(load_task(tmp_path / "other", preprocessor=None), convolved)
    (tmp_path / "other" / "config.json").write_text(json.dumps({**config, "conv_kernel_size": 10**9 + 1}))
    with pytest.raises(CheckpointError, match=r"conv\.conv\.weight.*must have shape \(12, 12, 1000000001\)"):
        load_backbone(tmp_path / "other")
