"""`new_task`: the model for some rows, without training it."""

from argparse import Namespace

import pytest

from keras_bert_layers.cli.train import new_task
from keras_bert_layers.cli.training_rows import TrainingRows

TEXTS = ["a good film", "bad night"]


def make(source, task, *labels, labels_kind="one", max_length=None, texts=(TEXTS,)):
    rows = TrainingRows(texts, labels)
    arguments = Namespace(labels=labels_kind, max_length=max_length)
    return new_task(str(source), task, (rows, rows), arguments, owner="train")


@pytest.mark.parametrize(
    ("kind", "labels", "problem_type", "num_classes"),
    [
        ("one", ["x", "y"], "single_label_classification", 2),
        ("several", [["x", "y", "z"], []], "multi_label_classification", 3),
        ("number", [0.5, 1.0], "regression", 1),
    ],
)
def test_a_classifier_for_the_labels(encoder, kind, labels, problem_type, num_classes):
    model = make(encoder, "classifier", labels, labels_kind=kind, max_length=7)
    assert (model.problem_type, model.num_classes) == (problem_type, num_classes)
    assert model.preprocessor.max_length == 7


def test_a_new_head_where_the_classes_are_others(classifier):
    assert make(classifier, "classifier", ["x", "y"]).class_names == ["x", "y"]


def test_tags_of_every_type(encoder):
    model = make(encoder, "token_classifier", [["B-per", "O"], ["B-loc"]], texts=([["Ann", "saw"], ["Rome"]],))
    assert model.tag_names == ["O", "B-loc", "I-loc", "B-per", "I-per"]


def test_other_tasks(encoder):
    answerer = make(encoder, "question_answerer", [[0]], [["a"]], max_length=12)
    assert (answerer.preprocessor.max_length, answerer.preprocessor.stride) == (12, 4)
    assert make(encoder, "question_answerer", [[0]], [["a"]]).preprocessor.max_length == 17  # the model's positions
    for task in ("masked_lm", "sentence_encoder", "cross_encoder"):
        assert make(encoder, task).preprocessor.max_length == 17


def test_a_file_is_trained_further(keras_file, encoder, tmp_path):
    assert make(keras_file, "classifier", ["x", "y"]).num_classes == 3
    with pytest.raises(ValueError, match="--max-length must be left out for a .keras file"):
        make(keras_file, "classifier", ["x", "y"], max_length=7)
    with pytest.raises(FileNotFoundError, match="`train`: no such file: .*absent.keras"):
        make(tmp_path / "absent.keras", "classifier", ["x", "y"])
    with pytest.raises(ValueError, match="must hold a BertMaskedLM. Received: a BertClassifier"):
        make(keras_file, "masked_lm")


def test_one_class_is_refused(encoder):
    with pytest.raises(ValueError, match=r"`train`: --label must be a column of at least two classes.*\['x'\]"):
        make(encoder, "classifier", ["x", "x"])
