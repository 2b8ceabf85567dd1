import dataclasses
import json
import re

import pytest

from keras_bert_layers.config import BertConfig

SIZES = {"vocabulary_size": 97, "hidden_dim": 12, "num_layers": 2, "num_heads": 3, "intermediate_dim": 20}


def test_defaults():
    config = BertConfig(**SIZES)
    assert config.to_dict() == {
        **SIZES,
        "activation": "gelu_erf",
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "max_sequence_length": 512,
        "num_segments": 2,
        "layer_norm_epsilon": 1e-12,
        "embedding_dim": None,
        "initializer_range": 0.02,
        "position_offset": 0,
        "pooler_activation": "tanh",
    }


def test_round_trip_through_json():
    config = BertConfig(**SIZES, activation="relu", dropout=0, embedding_dim=5)
    assert BertConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert hash(BertConfig.from_dict(config.to_dict())) == hash(config)


def test_it_is_frozen_and_a_changed_copy_is_checked():
    config = BertConfig(**SIZES)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.num_heads = 4
    assert dataclasses.replace(config, num_heads=4).num_heads == 4
    with pytest.raises(ValueError, match="must divide"):
        dataclasses.replace(config, num_heads=5)


def test_arguments_are_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        BertConfig(97, 12, 2, 3, 20)


def test_numbers_become_plain_python():
    numpy = pytest.importorskip("numpy")
    config = BertConfig(**{name: numpy.int64(value) for name, value in SIZES.items()}, dropout=numpy.float32(0.5))
    assert config == BertConfig(**SIZES, dropout=0.5)
    assert {type(value) for value in config.to_dict().values()} == {int, float, str, type(None)}


def test_an_embedding_as_wide_as_the_hidden_states_is_none():
    assert BertConfig(**SIZES, embedding_dim=12) == BertConfig(**SIZES)


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"vocabulary_size": 0}, ValueError, "`vocabulary_size` must be at least 1. Received: vocabulary_size=0."),
        ({"hidden_dim": "12"}, TypeError, "`hidden_dim` must be an integer. Received: hidden_dim='12'."),
        ({"num_layers": True}, TypeError, "`num_layers` must be an integer. Received: num_layers=True."),
        ({"num_heads": 5}, ValueError, "`num_heads` must divide `hidden_dim` (12). Received: num_heads=5."),
        ({"intermediate_dim": -1}, ValueError, "`intermediate_dim` must be at least 1. Received: intermediate_dim=-1."),
        ({"activation": "swoosh"}, ValueError, "`activation` must be one of ['gelu_erf', 'gelu_tanh', 'relu'"),
        ({"activation": None}, ValueError, "`activation` must be one of ['gelu_erf', 'gelu_tanh', 'relu'"),
        ({"dropout": 1}, ValueError, "`dropout` must be at least 0 and less than 1. Received: dropout=1."),
        ({"attention_dropout": None}, TypeError, "`attention_dropout` must be a number."),
        ({"max_sequence_length": 0}, ValueError, "`max_sequence_length` must be at least 1."),
        ({"num_segments": 1.0}, TypeError, "`num_segments` must be an integer."),
        ({"num_segments": -1}, ValueError, "`num_segments` must be at least 0."),
        ({"position_offset": -1}, ValueError, "`position_offset` must be at least 0."),
        ({"pooler_activation": "gelu"}, ValueError, "`pooler_activation` must be one of ['gelu_erf', 'gelu_tanh',"),
        ({"layer_norm_epsilon": 0}, ValueError, "`layer_norm_epsilon` must be greater than 0."),
        ({"initializer_range": float("nan")}, ValueError, "`initializer_range` must be greater than 0."),
        ({"layer_norm_epsilon": 10**400}, ValueError, "`layer_norm_epsilon` must be a number that a float can hold."),
        ({"embedding_dim": 13}, ValueError, "`embedding_dim` must not be greater than `hidden_dim` (12)."),
        ({"embedding_dim": 0}, ValueError, "`embedding_dim` must be at least 1."),
    ],
)
def test_errors(changed, error, text):
    with pytest.raises(error, match=re.escape(f"`BertConfig`: {text}")):
        BertConfig(**{**SIZES, **changed})


def test_gelu_alone_is_refused_with_a_cure():
    with pytest.raises(ValueError, match=re.escape("Received: activation='gelu'. Use \"gelu_erf\" (what HuggingFace")):
        BertConfig(**SIZES, activation="gelu")


def test_from_dict_refuses_unknown_and_missing_keys():
    text = (
        "`BertConfig.from_dict`: every key must be known. Received: num_layer=2 (did you mean 'num_layers'?), "
        "language='de'. Remove those that do not change the encoder from the config."
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        BertConfig.from_dict({**SIZES, "num_layer": 2, "language": "de"})
    incomplete = {"vocabulary_size": 97, "num_layers": 2, "num_heads": 3}
    with pytest.raises(
        ValueError, match=re.escape("the keys ['hidden_dim', 'intermediate_dim'], which have no default")
    ):
        BertConfig.from_dict(incomplete)
