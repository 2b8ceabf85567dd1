import json
import re
import shutil

import pytest

from keras_bert_layers import BertConfig, load_backbone, load_task, load_tokenizer, save_google
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.metadata import KEY, Metadata


def read_metadata(path, values):
    return Metadata.from_dict(path, values, has_weights=True)


CONFIG = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)


def test_round_trip(tmp_path):
    tokenizer = {"lowercase": True, "strip_accents": None}
    metadata = Metadata(CONFIG, tokenizer, "cross_encoder", {"dropout": 0.5}, weights=7, max_length=5)
    assert read_metadata(tmp_path, json.loads(json.dumps(metadata.to_dict()))) == metadata
    assert read_metadata(tmp_path, Metadata(CONFIG, weights=7).to_dict()) == Metadata(CONFIG, weights=7)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (Metadata(CONFIG), False),
        (Metadata(CONFIG, max_length=512), False),
        (Metadata(CONFIG, max_length=511), True),
        (Metadata(CONFIG, task="masked_lm", options={"head_activation": None}), False),
        (Metadata(CONFIG, task="cross_encoder", options={"dropout": 0.0}), True),
    ],
)
def test_whether_it_is_needed(metadata, expected):
    assert metadata.has_task_settings is expected


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "must be a JSON object. Received: []"),
        ({}, "must have the keys ['weights', 'config']. Received: []"),
        ({"weights": "a"}, "`weights` must be a known key with its type of value. Received: 'a'"),
        ({"gelu": 1}, "`gelu` must be a known key with its type of value"),
        ({"weights": 1, "config": {}}, "must have the keys ['vocabulary_size'"),
        ({"weights": 1, "config": {}, "task": "poem"}, "`task` must be one of ['classifier', 'cross_encoder', "),
        ({"weights": 1, "config": {}, "options": {"dropout": 0.1}}, "`options`: `dropout` must be a known key"),
        (
            {"weights": 1, "config": {}, "task": "classifier", "options": {"class_names": [1]}},
            "`class_names` must be strings. Received: [1]",
        ),
        ({"weights": 1, "config": {}, "tokenizer": {"lowercase": 1}}, "`tokenizer`: `lowercase` must be a known key"),
    ],
)
def test_broken(tmp_path, values, text):
    with pytest.raises(CheckpointError, match=rf"bert_config\.json: `{KEY}`.*{re.escape(text)}"):
        read_metadata(tmp_path / "bert_config.json", values)


@pytest.fixture
def directory(our_models, tmp_path):
    """A classifier with an epsilon of 1e-7 and a tokenizer of HuggingFace's kind."""
    with pytest.warns(UserWarning, match="layer_norm_epsilon=1e-07"):
        return save_google(our_models.make("classifier"), tmp_path / "classifier")


def change(directory, **changes):
    path = directory / "bert_config.json"
    values = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}), encoding="utf-8")


def test_without_the_metadata_google_counts(directory):
    assert load_backbone(directory).config.layer_norm_epsilon == 1e-7
    change(directory, **{KEY: None})
    assert load_backbone(directory).config.layer_norm_epsilon == 1e-12
    tokenizer = load_tokenizer(directory)
    assert (tokenizer.reference, tokenizer.lowercase) == ("google", True)
    assert load_task(directory).class_names is None


def test_a_changed_config(directory):
    change(directory, num_attention_heads=5)
    with pytest.raises(
        CheckpointError, match=r"bert_config\.json: the config under `keras_bert_layers` must agree with the"
    ):
        load_backbone(directory)


def test_other_weights(directory, google):
    for file in directory.glob("bert_model*"):
        file.unlink()
    config = {**google.CONFIG, "type_vocab_size": 4}
    google.save(directory / "model.ckpt-9", google.random_arrays({**google.encoder(config), **google.classifier(2)}))
    with pytest.warns(UserWarning, match=r"belong to other weights than model\.ckpt-9\.index, so the directory is"):
        model = load_task(directory)
    assert (model.num_classes, model.backbone.config.layer_norm_epsilon) == (2, 1e-12)
    assert model.preprocessor.tokenizer.reference == "google"


def test_a_moved_directory_without_weights(directory, tmp_path):
    for file in directory.glob("bert_model*"):
        file.unlink()
    shutil.move(directory, tmp_path / "cased")
    tokenizer = load_tokenizer(tmp_path / "cased")
    assert (tokenizer.reference, tokenizer.lowercase) == ("huggingface", True)


def test_a_task_without_its_head(directory):
    values = json.loads((directory / "bert_config.json").read_text(encoding="utf-8"))
    change(directory, **{KEY: {**values[KEY], "task": "question_answerer", "options": {}}})
    with pytest.raises(
        CheckpointError, match=r"must agree with the weights, which hold no head of a question_answerer"
    ):
        load_task(directory)
