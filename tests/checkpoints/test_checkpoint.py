import dataclasses

import pytest

from keras_bert_layers import BertConfig
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.checkpoint import TrainedHead, by_metadata, check_plain_bert
from keras_bert_layers.checkpoints.files.metadata import Metadata
from keras_bert_layers.checkpoints.google.directory import GoogleDirectory

CONFIG = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
HEADS = (TrainedHead("classifier", {"num_classes": 3, "dropout": 0.1}), TrainedHead("masked_lm"))
ERROR = CheckpointError("they disagree")


def test_the_head_of_the_metadata_is_first():
    metadata = Metadata(CONFIG, task="classifier", options={"dropout": 0.2})
    first, second = by_metadata(HEADS[::-1], metadata, ERROR)
    assert (first.name, first.options) == ("classifier", {"num_classes": 3, "dropout": 0.2})
    assert second is HEADS[1]


@pytest.mark.parametrize("metadata", [None, Metadata(CONFIG)])
def test_metadata_without_a_task(metadata):
    assert by_metadata(HEADS, metadata, ERROR) is HEADS


def test_metadata_of_another_task():
    with pytest.raises(CheckpointError, match="they disagree"):
        by_metadata(HEADS, Metadata(CONFIG, task="pretrainer"), ERROR)


def test_relatives_of_bert_are_refused():
    check_plain_bert("save", CONFIG, "Google")
    with pytest.raises(ValueError, match=r"`save`: `position_offset` must be 0 for Google\. Received: .*=2\. This is"):
        check_plain_bert("save", dataclasses.replace(CONFIG, position_offset=2), "Google")


def test_notes_are_kept_once(tmp_path):
    checkpoint = GoogleDirectory(tmp_path, owner="load_backbone")
    checkpoint.note("a", "b")
    checkpoint.note("b", "c")
    assert checkpoint.notes == ("a", "b", "c")
    assert str(checkpoint) == str(tmp_path)


def test_two_tensors_that_are_one_weight(tmp_path, monkeypatch):
    checkpoint = GoogleDirectory(tmp_path, owner="load_backbone")
    assert checkpoint.stored_names(["a", "b"]) == {"a": "a", "b": "b"}
    monkeypatch.setattr(GoogleDirectory, "table_name", lambda self, name: name.lower())
    with pytest.raises(CheckpointError, match="the tensors 'a' and 'A' are the same weight"):
        checkpoint.stored_names(["a", "A"])
