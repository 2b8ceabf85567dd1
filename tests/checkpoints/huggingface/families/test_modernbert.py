"""ModernBERT's `config.json`: what states the rotary positions and the activation, as in transformers 5."""

import json
import re

import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, BertMaskedLM
from keras_bert_layers.checkpoints import (
    CheckpointError,
    config_from_huggingface,
    load_backbone,
    load_task,
    save_huggingface,
)
from keras_bert_layers.checkpoints.huggingface.config_keys import read_fields
from keras_bert_layers.checkpoints.huggingface.families.modernbert import MODERNBERT

VALUES = {
    "model_type": "modernbert",
    "vocab_size": 97,
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 40,
    "hidden_activation": "silu",
    "norm_eps": 1e-5,
    "embedding_dropout": 0.1,
    "attention_dropout": 0.2,
}


@pytest.mark.peers
def test_keys_of_bert_are_not_read(transformers):
    berts = {"hidden_act": "relu", "attention_probs_dropout_prob": 0.3, "hidden_dropout_prob": 0.4}
    berts["layer_norm_eps"] = 1e-3
    found = BertConfig(**read_fields({**VALUES, **berts}))
    theirs = transformers.ModernBertConfig(**{**VALUES, **berts})
    assert (found.activation, theirs.hidden_activation) == ("silu", "silu")
    assert found.attention_dropout == theirs.attention_dropout == 0.2
    assert found.dropout == theirs.embedding_dropout == 0.1
    assert found.layer_norm_epsilon == theirs.norm_eps == 1e-5


def test_an_activation_by_berts_key_alone():
    """transformers would take its default."""
    values = {key: value for key, value in VALUES.items() if key != "hidden_activation"}
    with pytest.raises(ValueError, match=re.escape("must have the keys ['hidden_activation']")):
        config_from_huggingface({**values, "hidden_act": "relu"})


def bases(rope_parameters):
    values = {**VALUES, "rope_parameters": rope_parameters}
    parts = MODERNBERT.parts.read(values, BertConfig(**read_fields(values)))
    return [parts.positions.base, parts.local_attention.positions.base]


@pytest.mark.peers
@pytest.mark.parametrize(
    "entry",
    [{"type": "default", "rope_theta": 50.0}, {"type": "linear", "rope_type": "default", "rope_theta": 50.0}, {}],
    ids=str,
)
def test_plain_rotary_positions_by_either_key(entry, transformers):
    kinds = ("full_attention", "sliding_attention")
    given = {kind: dict(entry) for kind in kinds}
    theirs = transformers.ModernBertConfig(rope_parameters={kind: dict(entry) for kind in kinds}).rope_parameters
    assert [theirs[kind]["rope_type"] for kind in kinds] == ["default", "default"]
    assert bases(given) == [theirs[kind]["rope_theta"] for kind in kinds]


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        (BertMaskedLM, "decoder_bias", False),
        (BertMaskedLM, "classifier_bias", True),
        (BertClassifier, "classifier_bias", True),
        (BertClassifier, "classifier_activation", "relu"),
    ],
    ids=["decoder_bias", "classifier_bias", "classifier_bias of classes", "classifier_activation"],
)
def test_keys_of_a_head_refuse_this_head_alone(kind, key, value, tmp_path):
    config = BertConfig(**read_fields(VALUES))
    backbone = BertBackbone(config, parts=MODERNBERT.parts.read(VALUES, config))
    options = {"num_classes": 2} if kind is BertClassifier else {"head_activation": "gelu_erf"}
    save_huggingface(kind(backbone, **options), tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(CheckpointError, match=f"`load_task`: `{key}` must be .*Received: {key}=.*To train a new head"):
        load_task(tmp_path / "model", preprocessor=None)
    encoder = load_task(tmp_path / "model", task="sentence_encoder", preprocessor=None)
    assert encoder.backbone.config == load_backbone(tmp_path / "model").config == config
    if key == "decoder_bias":  # the layers of other heads have their own keys
        load_task(tmp_path / "model", task="classifier", num_classes=2, preprocessor=None)


@pytest.mark.parametrize("key", ["type", "rope_type"])
@pytest.mark.parametrize("kind", ["full_attention", "sliding_attention"])
def test_refuses_other_rotary_positions_by_either_key(kind, key):
    with pytest.raises(ValueError, match=f"`rope_parameters.{kind}.rope_type` must be 'default'. Received: .*linear"):
        bases({kind: {key: "linear", "factor": 2.0}})
