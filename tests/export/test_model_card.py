import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from keras_bert_layers import BertClassifier
from keras_bert_layers.export import Signature, read_model_card, write_saved_model

ROOT = Path(__file__).parents[2]
NUMBERS = {"x": ((None,), "float32")}


def test_card_of_a_task(backbone, preprocessor, tmp_path):
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
            "bytes_cut": {"dtype": "int32", "shape": [None]},
            "label": {"dtype": "string", "shape": [None]},
            "probabilities": {"dtype": "float32", "shape": [None, 2]},
        },
    }


def test_card_of_other_signatures(tmp_path):
    signature = Signature("add", lambda x: {"y": x + 1}, NUMBERS)
    path = write_saved_model(tmp_path / "model", [signature], facts={"author": "somebody"})
    card = read_model_card(path)
    assert sorted(card["signatures"]) == ["add", "serving_default"]
    assert card["author"] == "somebody"
    assert "task" not in card


def test_hashes_of_equal_and_of_other_models(tmp_path):
    def export(name, weights, constant):
        variable = tf.Variable(weights)
        signature = Signature("scale", lambda x: {"y": tf.where(x > constant, x, 0.0) * variable}, NUMBERS)
        card = read_model_card(write_saved_model(tmp_path / name, [signature]))
        return card["weights_sha256"], card["graph_sha256"]

    weights, graph = export("first", 2.0, 3.0)
    for number in range(3):  # TensorFlow counts what it traces, and puts the count into names
        tf.function(lambda x, number=number: x + number)(tf.constant(1.0))
    assert export("equal", 2.0, 3.0) == (weights, graph)
    assert export("other_weights", 2.5, 3.0)[1] == graph
    assert export("other_weights", 2.5, 3.0)[0] != weights
    assert export("other_constant", 2.0, 3.5)[0] == weights
    assert export("other_constant", 2.0, 3.5)[1] != graph


EXPORT = """
import gc, sys
gc.disable()  # tracing makes millions of objects that live as long as their graph
import keras, tensorflow as tf
import keras_bert_layers as kbl
from keras_bert_layers.preprocessing import SpanPreprocessor
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film"]
tokenizer = kbl.BertTokenizer(words)
if sys.argv[1] == "busy":
    for number in range(3):
        tf.function(lambda x: x + number)(tf.constant(1.0))
keras.utils.set_random_seed(3)
config = kbl.BertConfig(vocabulary_size=7, hidden_dim=6, num_layers=1, num_heads=2, intermediate_dim=7)
kbl.BertQuestionAnswerer(kbl.BertBackbone(config), SpanPreprocessor(tokenizer, 9, stride=2)).export(sys.argv[1])
"""


@pytest.mark.slow
def test_equal_tasks_of_two_processes_have_equal_cards(tmp_path):
    for name, seed in (("idle", "1"), ("busy", "2")):
        command = [sys.executable, "-c", EXPORT, name]
        environment = {"PYTHONHASHSEED": seed, "TF_CPP_MIN_LOG_LEVEL": "2", "PATH": "", "PYTHONPATH": str(ROOT)}
        finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stderr[-3000:]
    idle, busy = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "idle", tmp_path / "busy")
    )
    assert set(idle) == set(busy)
    assert {path.name for path, content in idle.items() if busy[path] != content} <= {
        "saved_model.pb",
        "fingerprint.pb",
    }


def test_a_folder_without_a_card(tmp_path):
    with pytest.raises(FileNotFoundError, match="`path` must be a SavedModel that this package wrote. Received: path="):
        read_model_card(tmp_path)
