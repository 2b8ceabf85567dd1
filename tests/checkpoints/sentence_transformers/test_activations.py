import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.sentence_transformers.modules import (
    ACTIVATIONS,
    read_activation,
    written_activation,
)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_both_ways(name):
    path = written_activation(ACTIVATIONS[name])
    assert path.startswith("torch.nn.modules.")
    assert path.endswith(f".{name}")
    assert read_activation("config.json", "activation_fn", path) == ACTIVATIONS[name]
    assert read_activation("config.json", "activation_fn", f"torch.nn.{name}") == ACTIVATIONS[name]


@pytest.mark.parametrize("value", ["torch.nn.Softsign", "mine.Tanh", "Tanh", "torch.Tanh.x", 3, None, ["torch.Tanh"]])
def test_others_are_refused_by_name(value):
    with pytest.raises(CheckpointError, match=r"config\.json: `activation_fn` must be one of .*Received: ") as raised:
        read_activation("config.json", "activation_fn", value)
    assert repr(value) in str(raised.value)
