import json
import re

import pytest

from keras_bert_layers import BertConfig
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.kerashub_notes import KerasHubNotes

CONFIG = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
TOKENIZER = {"lowercase": True, "strip_accents": None, "split_chinese": False, "reference": "google"}


def write(root, notes):
    (root / "metadata.json").write_text(json.dumps({"keras_version": "3", "keras_bert_layers": notes}))
    return root


@pytest.mark.parametrize(
    "notes",
    [
        KerasHubNotes(CONFIG),
        KerasHubNotes(CONFIG, TOKENIZER, "classifier", {"class_names": ["a", "b"], "threshold": 0.5, "pairs": True}),
        KerasHubNotes(CONFIG, TOKENIZER, "masked_lm", {"head_activation": "relu", "head_layer_norm_epsilon": 1e-12}),
        KerasHubNotes(CONFIG, None, "cross_encoder"),
    ],
)
def test_round_trip(notes, tmp_path):
    assert KerasHubNotes.read(write(tmp_path, notes.to_dict())) == notes


def test_no_notes(tmp_path):
    assert KerasHubNotes.read(tmp_path) == KerasHubNotes()
    (tmp_path / "metadata.json").write_text('{"keras_version": "3"}')
    assert KerasHubNotes.read(tmp_path) == KerasHubNotes()


@pytest.mark.parametrize(
    ("notes", "text"),
    [
        ([], "`keras_bert_layers` must be a JSON object. Received: []."),
        ({}, "`keras_bert_layers` must hold a `config`. Received: []."),
        ({"config": {}, "weights": 3}, "`keras_bert_layers`: `weights` must be a known key with its kind of value."),
        ({"config": []}, "`keras_bert_layers`: `config` must be a known key with its kind of value. Received: []."),
        ({"config": {"num_heads": 2}}, "`keras_bert_layers`: `BertConfig.from_dict`: `values` must have the keys"),
        ({"config": {}, "task": "summary"}, "`keras_bert_layers`: `task` must be one of ['classifier',"),
        ({"config": {}, "task": "masked_lm", "options": {"seed": 1}}, "`options`: `seed` must be a known key"),
        ({"config": {}, "options": {"pairs": True}}, "`options`: `pairs` must be a known key"),
        ({"config": {}, "tokenizer": {"lowercase": 1}}, "`tokenizer`: `lowercase` must be a known key with its kind"),
        ({"config": {}, "task": "classifier", "options": {"class_names": ["a", 2]}}, "`class_names` must be strings."),
    ],
)
def test_what_nobody_wrote(notes, text, tmp_path):
    with pytest.raises(CheckpointError, match=f"metadata\\.json: .*{re.escape(text)}"):
        KerasHubNotes.read(write(tmp_path, notes))
