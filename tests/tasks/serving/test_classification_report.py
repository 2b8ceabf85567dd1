"""`BertClassifier.report`."""

import json
import sys

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl

pytest.importorskip("sklearn")

TEXTS = ["a good film", "bad night", "good , good night !", "film", "a a a a a a a a a a"]
LABELS = ["good", "bad", "so", "so", "bad"]
NAMES = ["bad", "good", "so"]


@pytest.fixture(scope="module")
def classifier(new_backbone, preprocessor):
    return kbl.BertClassifier(new_backbone(), class_names=NAMES, preprocessor=preprocessor)


@pytest.fixture(scope="module")
def report(classifier):
    return classifier.report(TEXTS, LABELS, num_errors=2)


@pytest.fixture(scope="module")
def probabilities(classifier):
    return np.asarray(keras.ops.softmax(classifier.predict(TEXTS, verbose=0)))


def test_numbers(report, probabilities):
    true, predicted = np.array([NAMES.index(label) for label in LABELS]), probabilities.argmax(-1)
    expected = np.zeros((3, 3), int)
    np.add.at(expected, (true, predicted), 1)
    np.testing.assert_array_equal(report.confusion, expected)
    assert report.accuracy == pytest.approx((true == predicted).mean())
    for index, name in enumerate(NAMES):
        right = expected[index, index]
        assert report.per_class[name]["recall"] == pytest.approx(right / expected[index].sum())
        assert report.per_class[name]["precision"] == pytest.approx(right / max(expected[:, index].sum(), 1))
        assert report.per_class[name]["support"] == expected[index].sum()
    assert report.share_cut == 1 / 5  # the last text has ten tokens, and two are special
    assert report.num_texts == 5
    assert json.loads(json.dumps(report.to_dict()))["confusion"] == expected.tolist()
    assert "were cut at 9 tokens" in str(report)


def test_a_class_without_a_right_answer_is_named(new_backbone, preprocessor):
    classifier = kbl.BertClassifier(new_backbone(), class_names=NAMES, preprocessor=preprocessor)
    classifier.get_layer("classification_head").dense.bias.assign([-99.0, 99.0, -99.0])
    found = classifier.report(TEXTS[:4], ["good", "good", "good", "bad"], num_errors=0)  # 3:1, and no text of "so"
    assert found.accuracy == 0.75
    assert [line for line in str(found).splitlines() if "recall 0" in line] == [
        "no text of ['bad'] was recognized (recall 0). Accuracy may hide that. Add texts of them, train for longer, or "
        "weigh them with `class_weight`."
    ]
    assert "recall 0" not in str(classifier.report(TEXTS[:4], ["good"] * 4, num_errors=0))


def test_errors(report, classifier, preprocessor, probabilities):
    true = np.array([NAMES.index(label) for label in LABELS])
    wrong = [row for row in np.argsort(probabilities[range(5), true]) if probabilities[row].argmax() != true[row]]
    assert [error.row for error in report.errors] == wrong[:2]
    error = report.errors[0]
    assert (error.text, error.label) == (TEXTS[error.row], LABELS[error.row])
    assert error.probability == pytest.approx(probabilities[error.row].max())
    assert (error.tokens[0], error.tokens[-1]) == ("[CLS]", "[SEP]")
    assert error.weights[0] == error.weights[-1] == 0
    ids = {name: np.array(values) for name, values in preprocessor([error.text]).items()}
    ids["token_ids"][0, 1] = preprocessor.tokenizer.unknown_id
    without = np.asarray(keras.ops.softmax(classifier(ids)))[0, NAMES.index(error.predicted)]
    assert error.weights[1] == pytest.approx(error.probability - without, abs=1e-5)


def test_all_rows_of_an_error_are_steps_of_one_prediction(classifier, report, monkeypatch, capsys):
    predictions, predict = [], classifier.predict

    def counted(*rows, **options):
        predictions.append(rows)
        return predict(*rows, **options)

    monkeypatch.setattr(classifier, "predict", counted)
    assert classifier.report(TEXTS, LABELS, num_errors=2, verbose=1).errors == report.errors
    assert len(predictions) == 1
    shown = capsys.readouterr().out
    assert "5/5" in shown
    assert "2/2" in shown
    classifier.report(TEXTS, LABELS, num_errors=1)
    assert capsys.readouterr().out == ""


def test_one_hot_labels(classifier, report):
    one_hot = np.eye(3, dtype=int)[[NAMES.index(label) for label in LABELS]]
    np.testing.assert_array_equal(classifier.report(TEXTS, one_hot, num_errors=0).confusion, report.confusion)


def test_a_dictionary_of_texts(classifier, report):
    found = classifier.report({"text": TEXTS}, LABELS, num_errors=0)
    np.testing.assert_array_equal(found.confusion, report.confusion)


def test_pairs(classifier):
    found = classifier.report((TEXTS, TEXTS[::-1]), [0, 1, 2, 2, 0], num_errors=1)
    assert found.share_cut == 3 / 5
    assert found.errors[0].tokens.count("[SEP]") == 2
    assert isinstance(found.errors[0].text, tuple)


def test_refusals(classifier, new_backbone, preprocessor, monkeypatch):
    with pytest.raises(ValueError, match="every label must be one of .* Received: 'odd' in row 0"):
        classifier.report(["a"], ["odd"])
    with pytest.raises(ValueError, match="`labels` must hold one label for each of 2 texts. Received: 1 labels"):
        classifier.report(["a", "b"], ["bad"])
    with pytest.raises(ValueError, match="needs at least one text"):
        classifier.report([], [])
    number = kbl.BertClassifier(new_backbone(), problem_type="regression", preprocessor=preprocessor)
    with pytest.raises(ValueError, match="`problem_type` must be 'single_label_classification' for a report"):
        number.report(["a"], [1.0])
    with pytest.raises(ValueError, match="`preprocessor` must be given for raw text"):
        kbl.BertClassifier(new_backbone(), 2).report(["a"], [1])
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ModuleNotFoundError, match="`report` needs scikit-learn.*`pip install scikit-learn`"):
        classifier.report(["a"], ["bad"])
