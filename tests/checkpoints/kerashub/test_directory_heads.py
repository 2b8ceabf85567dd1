import re
from pathlib import Path

import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.kerashub.directory import kerashub_heads
from keras_bert_layers.checkpoints.weights.table import CLASSIFIER_ROWS, MASKED_LM_ROWS

PATH = Path("preset/task.json")
FRAME = {"backbone": {}, "preprocessor": None, "name": "task", "trainable": True}


def tasks(class_name, **arguments):
    found = kerashub_heads(PATH, {"class_name": class_name, "config": {**FRAME, **arguments}})
    return [(task.name, task.options, task.rows) for task in found]


@pytest.mark.parametrize("class_name", ["BertTextClassifier", "BertClassifier"])
@pytest.mark.parametrize(
    ("activation", "problem"),
    [
        (None, "single_label_classification"),
        ("linear", "single_label_classification"),
        ("softmax", "single_label_classification"),
        ("sigmoid", "multi_label_classification"),
    ],
)
def test_classes(class_name, activation, problem):
    options = {"num_classes": 3, "problem_type": problem, "dropout": 0.2}
    found = tasks(class_name, num_classes=3, activation=activation, dropout=0.2)
    assert found == [("classifier", options, CLASSIFIER_ROWS)]


def test_numbers():
    regression, scores = tasks("BertTextClassifier", num_classes=1)
    assert regression == ("classifier", {"problem_type": "regression"}, CLASSIFIER_ROWS)
    assert scores == ("cross_encoder", {}, CLASSIFIER_ROWS)
    assert tasks("BertTextClassifier", num_classes=1, activation="sigmoid") == [scores]


def test_masked_lm():
    head = {"head_activation": "gelu_erf", "head_layer_norm_epsilon": 1e-5}
    assert tasks("BertMaskedLM") == [("masked_lm", head, MASKED_LM_ROWS)]


def test_text_embedder():
    assert tasks("BertTextEmbedder") == [
        ("sentence_encoder", {"pooling": "mean", "normalize": True}, ()),
        ("dual_encoder", {"pooling": "mean", "normalize": True}, ()),
    ]
    assert tasks("BertTextEmbedder", pooling_mode="cls", normalize=False)[0][1] == {
        "pooling": "cls",
        "normalize": False,
    }


def test_no_task_and_an_unknown_one():
    assert kerashub_heads(PATH, {}) == ()
    assert tasks("MyTagger", anything=1) == []


@pytest.mark.parametrize(
    ("class_name", "arguments", "text"),
    [
        ("BertTextClassifier", {}, "`num_classes` must be an integer of at least 1. Received: None."),
        ("BertTextClassifier", {"num_classes": True}, "`num_classes` must be an integer of at least 1"),
        ("BertTextClassifier", {"num_classes": 2, "activation": "tanh"}, "`activation` must be 'linear', 'sigmoid'"),
        ("BertTextClassifier", {"num_classes": 1, "activation": "softmax"}, "`activation` must be 'linear', 'sigmoid'"),
        ("BertTextClassifier", {"num_classes": 2, "activation": {"module": "x"}}, "`activation` must be 'linear'"),
        ("BertTextClassifier", {"num_classes": 2, "pooling": 1}, "`pooling` must be a known key. Received: pooling=1."),
        ("BertTextClassifier", {"num_classes": 2, "dropout": True}, "`dropout` must be a number of at least 0"),
        ("BertTextEmbedder", {"normalize": "x"}, "`normalize` must be true or false. Received: 'x'."),
        ("BertMaskedLM", {"tied": False}, "`tied` must be a known key"),
        ("BertTextEmbedder", {"width": 9}, "`width` must be a known key"),
    ],
)
def test_arguments_that_are_refused(class_name, arguments, text):
    with pytest.raises(CheckpointError, match=re.escape(f"{PATH}: {text}")):
        tasks(class_name, **arguments)


def test_no_arguments():
    with pytest.raises(CheckpointError, match=r"task\.json: `config` must be a JSON object\. Received: None"):
        kerashub_heads(PATH, {"class_name": "BertMaskedLM"})
