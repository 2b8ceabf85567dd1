import json
import re

import pytest

from keras_bert_layers import BertConfig
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.metadata import Metadata
from keras_bert_layers.checkpoints.kerashub.directory import KerasHubDirectory

CONFIG = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
TOKENIZER = {"lowercase": True, "strip_accents": None, "split_chinese": False, "reference": "google"}


def read_metadata(root):
    return KerasHubDirectory(root, owner="load_task")._metadata


def write(root, metadata):
    (root / "metadata.json").write_text(json.dumps({"keras_version": "3", "keras_bert_layers": metadata}))
    return root


@pytest.mark.parametrize(
    "metadata",
    [
        Metadata(CONFIG),
        Metadata(CONFIG, TOKENIZER, "classifier", {"class_names": ["a", "b"], "threshold": 0.5, "pairs": True}),
        Metadata(CONFIG, TOKENIZER, "masked_lm", {"head_activation": "relu", "head_layer_norm_epsilon": 1e-12}),
        Metadata(CONFIG, None, "cross_encoder"),
    ],
)
def test_round_trip(metadata, tmp_path):
    assert read_metadata(write(tmp_path, metadata.to_dict())) == metadata


def test_no_metadata(tmp_path):
    assert read_metadata(tmp_path) is None
    (tmp_path / "metadata.json").write_text('{"keras_version": "3"}')
    assert read_metadata(tmp_path) is None


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ([], "`keras_bert_layers` must be a JSON object. Received: []."),
        ({}, "`keras_bert_layers` must have the keys ['config']. Received: []."),
        ({"config": {}, "weights": 3}, "`keras_bert_layers`: `weights` must be a known key with its type of value."),
        ({"config": []}, "`keras_bert_layers`: `config` must be a known key with its type of value. Received: []."),
        ({"config": {"num_heads": 2}}, "`keras_bert_layers`: `BertConfig.from_dict`: `values` must have the keys"),
        ({"config": {}, "task": "summary"}, "`keras_bert_layers`: `task` must be one of ['classifier',"),
        ({"config": {}, "task": "masked_lm", "options": {"seed": 1}}, "`options`: `seed` must be a known key"),
        ({"config": {}, "options": {"pairs": True}}, "`options`: `pairs` must be a known key"),
        ({"config": {}, "tokenizer": {"lowercase": 1}}, "`tokenizer`: `lowercase` must be a known key with its type"),
        ({"config": {}, "task": "classifier", "options": {"class_names": ["a", 2]}}, "`class_names` must be strings."),
    ],
)
def test_what_nobody_wrote(metadata, text, tmp_path):
    with pytest.raises(CheckpointError, match=f"metadata\\.json: .*{re.escape(text)}"):
        read_metadata(write(tmp_path, metadata))
