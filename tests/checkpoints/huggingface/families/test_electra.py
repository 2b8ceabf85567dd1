import dataclasses
import json
import re

import pytest

from keras_bert_layers import BertBackbone, BertConfig, BertMultipleChoice
from keras_bert_layers.checkpoints import (
    CheckpointError,
    config_from_huggingface,
    config_to_huggingface,
    load_backbone,
    load_task,
    save_huggingface,
)

SIZES = {"vocabulary_size": 97, "hidden_dim": 12, "num_layers": 2, "num_heads": 3, "intermediate_dim": 20}
CONFIG = BertConfig(**SIZES, pooler_activation="gelu_erf", embedding_dim=5, layer_norm_epsilon=1e-5)


def test_keys():
    values = config_to_huggingface(CONFIG)
    assert (values["embedding_size"], values["summary_activation"]) == (5, "gelu")
    wide = config_to_huggingface(dataclasses.replace(CONFIG, embedding_dim=None))
    assert wide["embedding_size"] == 12
    # Without the multiple-choice head, they change nothing.
    assert config_from_huggingface({**values, "summary_type": "mean"}) == CONFIG


def test_the_keys_of_the_multiple_choice_head(tmp_path):
    task = BertMultipleChoice(BertBackbone(CONFIG))
    save_huggingface(task, tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "summary_type": "mean"}))
    text = "`summary_type` must be 'first'. Received: summary_type='mean'."
    with pytest.raises(CheckpointError, match=re.escape(text)):
        load_task(tmp_path / "model", preprocessor=None)
    assert load_backbone(tmp_path / "model").config == CONFIG
