import dataclasses
import re

import pytest

from keras_bert_layers import BertConfig
from keras_bert_layers.checkpoints import config_from_huggingface, config_to_huggingface

SIZES = {"vocabulary_size": 97, "hidden_dim": 12, "num_layers": 2, "num_heads": 3, "intermediate_dim": 20}
CONFIG = BertConfig(**SIZES, pooler_activation="gelu_erf", embedding_dim=5, layer_norm_epsilon=1e-5)


def test_keys():
    values = config_to_huggingface(CONFIG)
    assert (values["embedding_size"], values["summary_activation"]) == (5, "gelu")
    wide = config_to_huggingface(dataclasses.replace(CONFIG, embedding_dim=None))
    assert wide["embedding_size"] == 12
    text = "`summary_type` must be 'first'. Received: summary_type='mean'."
    with pytest.raises(ValueError, match=re.escape(text)):
        config_from_huggingface({**values, "summary_type": "mean"})
    # Without the multiple-choice head, it changes nothing.
    others = {**values, "summary_type": "mean", "architectures": ["ElectraForMaskedLM"]}
    assert config_from_huggingface(others) == CONFIG
