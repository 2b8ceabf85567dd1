import re

import pytest
from config_values import EXPECTED, GOOGLE, HUGGINGFACE

from keras_bert_layers.checkpoints import config_from_google, config_from_huggingface, config_to_google
from keras_bert_layers.config import BertConfig


def test_google():
    assert config_from_google(GOOGLE) == BertConfig(**EXPECTED, activation="gelu_tanh")
    assert config_from_google({**GOOGLE, "hidden_act": "relu"}).activation == "relu"
    assert config_from_google({**GOOGLE, "embedding_size": 7}).embedding_dim == 7


def test_google_multilingual_keys():
    # As in multi_cased_L-12_H-768_A-12/bert_config.json.
    more = {
        "directionality": "bidi",
        "pooler_fc_size": 768,
        "pooler_num_attention_heads": 12,
        "pooler_num_fc_layers": 3,
        "pooler_size_per_head": 128,
        "pooler_type": "first_token_transform",
    }
    assert config_from_google({**GOOGLE, **more}) == config_from_google(GOOGLE)
    assert config_from_huggingface({**HUGGINGFACE, **more}) == config_from_huggingface(HUGGINGFACE)


@pytest.mark.parametrize(
    ("ours", "word"), [("gelu_tanh", "gelu"), ("relu", "relu"), ("tanh", "tanh"), ("linear", "linear")]
)
def test_to_google(ours, word):
    config = BertConfig(**EXPECTED, activation=ours)
    assert config_to_google(config) == {**GOOGLE, "hidden_act": word}
    assert list(config_to_google(config)) == list(GOOGLE)  # in the order of Google's own files
    assert config_from_google(config_to_google(config)) == config


def test_to_google_narrower_embedding():
    config = BertConfig(**EXPECTED, activation="gelu_tanh", embedding_dim=7)
    assert config_to_google(config) == {**GOOGLE, "embedding_size": 7}
    assert config_from_google(config_to_google(config)) == config


def test_what_google_cannot_express():
    """The erf form and the epsilon, for which Google's files have no key."""
    config = BertConfig(**EXPECTED, activation="gelu_erf", layer_norm_epsilon=1e-5)
    assert config_to_google(config) == GOOGLE
    text = "`config_to_google`: `activation` must be one of ['gelu_erf', 'gelu_tanh', 'relu', 'tanh', 'linear'] for"
    for activation in ("silu", "mish", "relu6", "sigmoid"):
        with pytest.raises(ValueError, match=re.escape(text)):
            config_to_google(BertConfig(**EXPECTED, activation=activation))


def test_google_casing_is_the_tokenizers():
    assert config_from_google({**GOOGLE, "do_lower_case": False}) == config_from_google(GOOGLE)


def test_unknown_keys_of_google():
    text = "`config_from_google`: every key must be known. Received: rotary=True, layer_norm_epsilon=1e-12."
    with pytest.raises(ValueError, match=re.escape(text)):
        config_from_google({**GOOGLE, "rotary": True, "layer_norm_epsilon": 1e-12})
