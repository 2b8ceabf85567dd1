import pytest

from keras_bert_layers.checkpoints.checkpoint import DoubtKind
from keras_bert_layers.checkpoints.huggingface.labels import labels_of, stated_labels


@pytest.mark.parametrize(
    ("id2label", "labels", "is_doubtful"),
    [
        ({"0": "a", "1": "b", "2": "c"}, ["a", "b", "c"], False),
        ({0: "a", 1: "b", 2: "c"}, ["a", "b", "c"], False),
        ({"2": 7, "0": 5, "1": 6}, ["5", "6", "7"], False),
        (["a", "b", "c"], ["a", "b", "c"], False),
        (None, ["LABEL_0", "LABEL_1", "LABEL_2"], False),
        ({}, ["LABEL_0", "LABEL_1", "LABEL_2"], False),
        # transformers looks up the output's index too, so the first has no label.
        ({"1": "a", "2": "b", "3": "c"}, ["LABEL_0", "a", "b"], True),
        ({"0": "a", "2": "c"}, ["a", "LABEL_1", "c"], True),
        ({"0": "a", "1": "b"}, ["a", "b", "LABEL_2"], True),
        ({"0": "a", "1": "b", "2": "c", "3": "d"}, ["a", "b", "c"], True),
        ({"0": "a", "1": "a", "2": "a"}, ["a", "a (2)", "a (3)"], True),
        ({"0": "a", "1": "a", "2": "a (2)"}, ["a", "a (3)", "a (2)"], True),
        ({"0": None, "1": "", "2": "c"}, ["LABEL_0", "LABEL_1", "c"], True),
        ({"a": 0, "b": 1, "c": 2}, ["LABEL_0", "LABEL_1", "LABEL_2"], True),
        ("abc", ["LABEL_0", "LABEL_1", "LABEL_2"], True),
    ],
    ids=str,
)
def test_labels_of_three_outputs(id2label, labels, is_doubtful):
    found, doubts = labels_of({"id2label": id2label}, 3, "some/config.json")
    assert found == labels
    assert bool(doubts) == is_doubtful
    assert all(doubt.kind is DoubtKind.LABELS for doubt in doubts)
    text = "some/config.json: `id2label` must give each of the head's 3 outputs its own"
    assert all(text in doubt.text for doubt in doubts)


def test_stated_labels():
    assert stated_labels({"id2label": {"0": "a", "1": "b"}, "num_labels": 2}) == ["a", "b"]
    assert stated_labels({"id2label": None, "num_labels": 3}) == ["LABEL_0", "LABEL_1", "LABEL_2"]
    assert stated_labels({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}) is None  # of every older config
    assert stated_labels({"num_labels": True}) is None
    assert stated_labels({"num_labels": 10**15}) is stated_labels({"id2label": {str(10**15): "x"}}) is None
