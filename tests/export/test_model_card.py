import hashlib

import pytest

from keras_bert_layers import BertClassifier
from keras_bert_layers.export import Signature, read_model_card, write_saved_model


def test_what_a_task_tells(backbone, preprocessor, tmp_path):
    task = BertClassifier(backbone, class_names=["schlecht", "gut"], preprocessor=preprocessor, name="kritik")
    task.export(tmp_path / "model", dtype="bfloat16", max_bytes=99)
    card = read_model_card(tmp_path / "model")
    weights = tmp_path / "model" / "variables" / "variables.data-00000-of-00001"
    assert card["weights_sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert (card["task"], card["dtype"], card["backbone"]["hidden_dim"]) == ("BertClassifier", "bfloat16", 15)
    assert card["options"]["class_names"] == ["schlecht", "gut"]
    preprocessing = card["preprocessing"]
    assert (preprocessing["max_length"], preprocessing["max_bytes"], preprocessing["vocabulary_size"]) == (9, 99, 18)
    assert preprocessing["tokenizer"]["reference"] == "google"
    assert card["oldest_tensorflow_serving"] == "2.13"
    assert set(card["packages"]) == {"keras-bert-layers", "keras", "tensorflow", "tensorflow-text"}
    assert card["signatures"]["serving_default"] == {
        "inputs": {"text": {"dtype": "string", "shape": [None]}},
        "outputs": {
            "label": {"dtype": "string", "shape": [None]},
            "probabilities": {"dtype": "float32", "shape": [None, 2]},
        },
    }


def test_a_model_of_ones_own(tmp_path):
    signature = Signature("add", lambda x: {"y": x + 1}, {"x": ((None,), "float32")})
    path = write_saved_model(tmp_path / "model", [signature], facts={"author": "somebody"})
    card = read_model_card(path)
    assert sorted(card["signatures"]) == ["add", "serving_default"]
    assert card["author"] == "somebody"
    assert "task" not in card


def test_a_folder_without_a_card(tmp_path):
    with pytest.raises(FileNotFoundError, match="`path` must be a SavedModel that this package wrote. Received: path="):
        read_model_card(tmp_path)
