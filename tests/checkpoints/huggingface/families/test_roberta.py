import pytest

from keras_bert_layers import BertConfig
from keras_bert_layers.checkpoints import config_from_huggingface, config_to_huggingface

SIZES = {"vocabulary_size": 97, "hidden_dim": 12, "num_layers": 2, "num_heads": 3, "intermediate_dim": 20}
CONFIG = BertConfig(**SIZES, position_offset=2, num_segments=1, max_sequence_length=11)


def test_keys():
    values = config_to_huggingface(CONFIG)
    assert (values["max_position_embeddings"], values["pad_token_id"]) == (13, 1)
    del values["pad_token_id"]  # transformers' default is 1
    assert config_from_huggingface(values).position_offset == 2
    other = config_from_huggingface({**values, "pad_token_id": 4})
    assert (other.position_offset, other.max_sequence_length) == (5, 8)
    with pytest.raises(TypeError, match="`pad_token_id` must be an integer. Received: pad_token_id=None"):
        config_from_huggingface({**values, "pad_token_id": None})


@pytest.mark.parametrize("model_type", ["camembert", "roberta"])
def test_types_with_the_weights_of_xlm_roberta(model_type):
    values = {**config_to_huggingface(CONFIG), "model_type": model_type}
    assert config_from_huggingface(values) == CONFIG
