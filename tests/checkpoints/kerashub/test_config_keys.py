import re

import pytest
from config_values import EXPECTED, SIZES

from keras_bert_layers.checkpoints import config_from_kerashub, config_to_kerashub
from keras_bert_layers.config import BertConfig

KERASHUB = {
    "module": "keras_hub.src.models.bert.bert_backbone",
    "class_name": "BertBackbone",
    "config": {
        "name": "bert_backbone",
        "trainable": True,
        "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}},
        **SIZES,
        "dropout": 0.3,
        "max_sequence_length": 11,
        "num_segments": 5,
    },
    "registered_name": "keras_hub>BertBackbone",
}


def kerashub(**arguments):
    return {**KERASHUB, "config": {**KERASHUB["config"], **arguments}}


def test_kerashub_has_one_gelu_one_epsilon_and_one_rate():
    config = config_from_kerashub(KERASHUB)
    assert config == BertConfig(
        **{**EXPECTED, "activation": "gelu_tanh", "attention_dropout": 0.3, "initializer_range": 0.02}
    )
    assert config_from_kerashub(config_to_kerashub(config)) == config


def test_kerashub_of_old_files():
    values = {**KERASHUB, "registered_name": "keras_nlp>BertBackbone", "config": SIZES}
    assert config_from_kerashub(values) == BertConfig(**SIZES, activation="gelu_tanh")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({**KERASHUB, "class_name": "RobertaBackbone"}, "`class_name` must be 'BertBackbone'. Received:"),
        ({**KERASHUB, "registered_name": "mine>BertBackbone"}, "`registered_name` must be 'keras_hub>BertBackbone' or"),
        ({**KERASHUB, "heads": 3}, "every key must be known. Received: heads=3"),
        ({"class_name": "BertBackbone"}, "must have the keys ['config']"),
        ({**KERASHUB, "config": [1]}, "`values` must be a dictionary. Received: values=[1]"),
        (kerashub(layer_norm_epsilon=1e-5), "every key must be known. Received: layer_norm_epsilon=1e-05"),
        (kerashub(dtype={"class_name": "DTypePolicyMap"}), "`dtype` must be a DTypePolicy. Received:"),
        (kerashub(num_heads=5), "`num_heads` must divide `hidden_dim` (12). Received: num_heads=5"),
        ({**KERASHUB, "config": {**SIZES, "num_heads": None}}, "`num_heads` must be an integer"),
        ({**KERASHUB, "config": {"num_heads": 3}}, "must have the keys ['vocabulary_size', 'num_layers'"),
    ],
)
def test_kerashub_values_that_are_refused(values, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        config_from_kerashub(values)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"embedding_dim": 4}, "`embedding_dim` must be None for KerasHub. Received: embedding_dim=4"),
        ({"activation": "relu"}, "`activation` must be a GELU for KerasHub. Received: activation='relu'"),
    ],
)
def test_models_that_kerashub_does_not_have(change, text):
    with pytest.raises(ValueError, match=re.escape(f"`config_to_kerashub`: {text}")):
        config_to_kerashub(BertConfig(**SIZES, **change))
