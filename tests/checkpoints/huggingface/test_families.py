"""Families of transformers: configs and class names both ways, and what each config cannot express."""

import dataclasses
import re

import pytest

from keras_bert_layers import BertConfig
from keras_bert_layers.checkpoints import config_from_huggingface, config_to_huggingface
from keras_bert_layers.checkpoints.huggingface.families import FAMILIES, family_of, stated_family

BERT, DISTILBERT, ELECTRA, XLM_ROBERTA, *_ = FAMILIES
CONFIG = BertConfig(vocabulary_size=97, hidden_dim=12, num_layers=2, num_heads=3, intermediate_dim=20)
CONFIGS = {
    "DistilBERT": dataclasses.replace(CONFIG, num_segments=0, pooler_activation="relu", dropout=0.3),
    "ELECTRA": dataclasses.replace(CONFIG, pooler_activation="gelu_erf", embedding_dim=5, layer_norm_epsilon=1e-5),
    "XLM-RoBERTa": dataclasses.replace(CONFIG, position_offset=2, num_segments=1, max_sequence_length=11),
    "BERT": CONFIG,
}
DISTILBERT_VALUES = {
    "model_type": "distilbert",
    "architectures": ["DistilBertForMaskedLM"],
    "vocab_size": 97,
    "dim": 12,
    "n_layers": 2,
    "n_heads": 3,
    "hidden_dim": 20,
    "activation": "gelu",
    "dropout": 0.3,
    "attention_dropout": 0.1,
    "max_position_embeddings": 512,
    "initializer_range": 0.02,
    "sinusoidal_pos_embds": True,
    "qa_dropout": 0.1,
    "seq_classif_dropout": 0.2,
    "tie_weights_": True,
    "pad_token_id": 0,
}


@pytest.mark.parametrize("title", CONFIGS)
def test_configs_both_ways(title):
    config = CONFIGS[title]
    assert family_of(config).title == title
    values = config_to_huggingface(config)
    assert stated_family(values).title == title
    assert config_from_huggingface(values) == config


def test_keys_of_distilbert():
    assert config_from_huggingface(DISTILBERT_VALUES) == CONFIGS["DistilBERT"]
    # transformers knows three keys by BERT's names too; a key of BERT that DistilBERT does not read changes nothing.
    renamed = {key: value for key, value in DISTILBERT_VALUES.items() if key not in ("dim", "n_heads", "n_layers")}
    renamed |= {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2, "type_vocab_size": 2}
    assert config_from_huggingface(renamed) == CONFIGS["DistilBERT"]
    for key in ("dim", "hidden_dim", "activation"):
        values = {name: value for name, value in DISTILBERT_VALUES.items() if name != key}
        with pytest.raises(ValueError, match=re.escape(f"must have the keys ['{key}'], which have no default")):
            config_from_huggingface(values)


def test_keys_of_xlm_roberta():
    values = config_to_huggingface(CONFIGS["XLM-RoBERTa"])
    assert (values["max_position_embeddings"], values["pad_token_id"]) == (13, 1)
    del values["pad_token_id"]  # transformers' default is 1
    assert config_from_huggingface(values).position_offset == 2
    other = config_from_huggingface({**values, "pad_token_id": 4})
    assert (other.position_offset, other.max_sequence_length) == (5, 8)
    with pytest.raises(TypeError, match="`pad_token_id` must be an integer. Received: pad_token_id=None"):
        config_from_huggingface({**values, "pad_token_id": None})


def test_keys_of_electra():
    values = config_to_huggingface(CONFIGS["ELECTRA"])
    assert (values["embedding_size"], values["summary_activation"]) == (5, "gelu")
    wide = config_to_huggingface(dataclasses.replace(CONFIGS["ELECTRA"], embedding_dim=None))
    assert wide["embedding_size"] == 12
    text = "`summary_type` must be 'first'. Received: summary_type='mean'."
    with pytest.raises(ValueError, match=re.escape(text)):
        config_from_huggingface({**values, "summary_type": "mean"})
    # Without the multiple-choice head, it changes nothing.
    others = {**values, "summary_type": "mean", "architectures": ["ElectraForMaskedLM"]}
    assert config_from_huggingface(others) == CONFIGS["ELECTRA"]


@pytest.mark.parametrize("model_type", ["camembert", "roberta"])
def test_types_with_the_weights_of_xlm_roberta(model_type):
    values = {**config_to_huggingface(CONFIGS["XLM-RoBERTa"]), "model_type": model_type}
    assert config_from_huggingface(values) == CONFIGS["XLM-RoBERTa"]


def test_old_files_without_a_type():
    values = {key: value for key, value in DISTILBERT_VALUES.items() if key != "model_type"}
    assert stated_family(values) is DISTILBERT
    assert stated_family({"architectures": ["CamembertForMaskedLM"]}) is XLM_ROBERTA
    assert stated_family({}) is BERT
    assert stated_family({"architectures": ["AlbertForMaskedLM"]}) is None


@pytest.mark.parametrize(
    ("title", "changes", "text"),
    [
        ("DistilBERT", {"layer_norm_epsilon": 1e-5}, "`layer_norm_epsilon` must be 1e-12 for HuggingFace's"),
        (
            "DistilBERT",
            {"pooler_activation": "tanh"},
            "`pooler_activation` must be 'relu' for HuggingFace's Dis",
        ),
        ("DistilBERT", {"embedding_dim": 5}, "`embedding_dim` must be None for HuggingFace's DistilBERT"),
        ("XLM-RoBERTa", {"num_segments": 0}, "`num_segments` must be at least 1 for HuggingFace's XLM-RoBERTa"),
        ("XLM-RoBERTa", {"pooler_activation": "relu"}, "`pooler_activation` must be 'tanh' for HuggingFace's XLM-RoB"),
        ("BERT", {"pooler_activation": "relu"}, "`pooler_activation` must be 'tanh' for HuggingFace's BERT"),
    ],
)
def test_models_that_no_family_has(title, changes, text):
    config = dataclasses.replace(CONFIGS[title], **changes)
    with pytest.raises(ValueError, match=re.escape(f"`config_to_huggingface`: {text}")):
        config_to_huggingface(config)


def test_classes_both_ways():
    assert DISTILBERT.own_class("BertForMaskedLM") == "DistilBertForMaskedLM"
    assert DISTILBERT.bert_class("TFDistilBertForMaskedLM") == "BertForMaskedLM"
    assert XLM_ROBERTA.bert_class("CamembertModel") == "BertModel"
    assert ELECTRA.bert_class("ElectraForPreTraining") == "ElectraForPreTraining"  # not what BERT calls so
    assert BERT.bert_class("BertForPreTraining") == "BertForPreTraining"
