"""Families of transformers: configs and class names both ways, and what each config cannot express."""

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from keras_bert_layers import BertConfig
from keras_bert_layers.checkpoints import config_from_huggingface, config_to_huggingface
from keras_bert_layers.checkpoints.huggingface.families import table
from keras_bert_layers.checkpoints.huggingface.families.family import Family
from keras_bert_layers.checkpoints.huggingface.families.table import ALBERT, FAMILIES, family_of, stated_family

BERT, DISTILBERT, ELECTRA, XLM_ROBERTA, *_ = FAMILIES
CONFIG = BertConfig(vocabulary_size=97, hidden_dim=12, num_layers=2, num_heads=3, intermediate_dim=20)
CONFIGS = {
    "DistilBERT": dataclasses.replace(CONFIG, num_segments=0, pooler_activation="relu", dropout=0.3),
    "ELECTRA": dataclasses.replace(CONFIG, pooler_activation="gelu_erf", embedding_dim=5, layer_norm_epsilon=1e-5),
    "XLM-RoBERTa": dataclasses.replace(CONFIG, position_offset=2, num_segments=1, max_sequence_length=11),
    "BERT": CONFIG,
}


def test_every_family_is_in_the_table():
    files = [path.stem for path in Path(table.__file__).parent.glob("*.py") if path.stem not in ("__init__", "table")]
    modules = [importlib.import_module(f"{table.__package__}.{name}") for name in files]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Family)]
    assert len(found) == len(FAMILIES)
    assert all(any(value is family for family in FAMILIES) for value in found)


def test_no_type_is_of_two_families():
    types = [kind for family in FAMILIES for kind in family.model_types]
    assert len(types) == len(set(types))


@pytest.mark.parametrize("title", CONFIGS)
def test_configs_both_ways(title):
    config = CONFIGS[title]
    assert family_of(config).title == title
    values = config_to_huggingface(config)
    assert stated_family(values).title == title
    assert config_from_huggingface(values) == config


def test_old_files_without_a_type():
    assert stated_family({"architectures": ["DistilBertForMaskedLM"]}) is DISTILBERT
    assert stated_family({"architectures": ["CamembertForMaskedLM"]}) is XLM_ROBERTA
    assert stated_family({}) is BERT
    assert stated_family({"architectures": ["AlbertForMaskedLM"]}) is ALBERT
    assert stated_family({"architectures": ["BigBirdForMaskedLM"]}) is None


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
