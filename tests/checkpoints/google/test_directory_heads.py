import pytest

from keras_bert_layers.checkpoints.files.tensor_file import TensorInfo
from keras_bert_layers.checkpoints.google.directory import google_heads


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ([], []),
        (["masked_lm", "next_sentence"], ["pretrainer", "masked_lm"]),
        (["masked_lm"], ["masked_lm"]),
        (["next_sentence"], ["classifier"]),
        (["question_answerer"], ["question_answerer"]),
        (["question_answerer", "masked_lm", "next_sentence"], ["question_answerer", "pretrainer", "masked_lm"]),
    ],
)
def test_by_the_names_of_heads(google, heads, expected):
    shapes = dict(google.encoder())
    for head in heads:
        shapes |= getattr(google, head)()
    tasks = google_heads({name: TensorInfo("F32", shape) for name, shape in shapes.items()})
    assert [task.name for task in tasks] == expected
    for task in tasks:
        assert {row.google.name for row in task.rows} <= shapes.keys() - google.encoder().keys()


@pytest.mark.parametrize(
    ("num_labels", "expected"),
    [
        (3, [("classifier", {"num_classes": 3, "dropout": 0.1})]),
        (1, [("classifier", {"problem_type": "regression", "dropout": 0.1}), ("cross_encoder", {"dropout": 0.1})]),
    ],
)
def test_classifiers(google, num_labels, expected):
    infos = {name: TensorInfo("F32", shape) for name, shape in google.classifier(num_labels).items()}
    assert [(task.name, task.options) for task in google_heads(infos)] == expected


def test_half_a_head_is_not_a_head(google):
    infos = {name: TensorInfo("F32", shape) for name, shape in google.masked_lm().items() if "LayerNorm" not in name}
    assert google_heads(infos) == ()
    assert google_heads({"output_weights": TensorInfo("F32", (2, 3))}) == ()
