import re
from functools import cache

import keras
import numpy as np
import pytest

from keras_bert_layers.metrics import F1Score

# A float32 division for each of at most seven classes.
FLOAT32 = 1e-6
NUM_CASES = 150  # of each of the seven below
CASES = [("binary", 2, False), *((average, 7, many) for average in ("macro", "micro", "weighted") for many in (0, 1))]


def reference(true, predicted, weight, average):
    """From rows of 0 and 1; of one class a text if each row has one 1."""
    many = not (true.sum(axis=1) == 1).all() or not (predicted.sum(axis=1) == 1).all()
    scores, golds, hits = [], [], []
    for column in range(true.shape[1]):
        gold, found = true[:, column] == 1, predicted[:, column] == 1
        hit, both = weight[gold & found].sum(), weight[gold].sum() + weight[found].sum()
        if many or both > 0 or average == "binary":
            scores.append(2 * hit / both if both else 0.0)
            golds.append(weight[gold].sum())
            hits.append((hit, both))
    if average == "binary":
        return scores[1]
    if average == "micro":
        hit, both = np.sum(hits, axis=0)
        return 2 * hit / both if both else 0.0
    if average == "weighted":
        return np.average(scores, weights=golds) if sum(golds) else 0.0
    return np.mean(scores)


@cache
def random_cases(num_classes, many):
    """Labels, predictions, weights: ids, or rows of 0 and 1 and logits."""
    generator = np.random.default_rng(num_classes)
    cases = []
    for _ in range(NUM_CASES):
        num_rows, used = generator.integers(1, 40), generator.integers(1, num_classes + 1)
        weight = generator.integers(1, 4, num_rows).astype("float32")
        if many:
            true = (generator.random((num_rows, num_classes)) < generator.random()).astype("int32")
            true[0, :2] = 1  # so that no case looks as if it had one label per text
            logits = generator.normal(size=true.shape) + generator.integers(0, 5) * (true - 0.5)
            cases.append((true, logits.astype("float32"), weight))
        else:
            true, other = generator.integers(0, used, (2, num_rows)).astype("int32")
            cases.append((true, np.where(generator.random(num_rows) < generator.random(), true, other), weight))
    return cases


@pytest.fixture(scope="module", params=CASES, ids=str)
def found(request, stream):
    average, num_classes, many = request.param
    cases = random_cases(num_classes, many)
    return average, many, cases, stream(F1Score(num_classes, average, multi_label=bool(many)), cases)


def rows(case, num_classes, many):
    true, predicted, weight = case
    if many:
        return true, (predicted > 0).astype("int32"), weight
    return np.eye(num_classes)[true], np.eye(num_classes)[predicted], weight


def test_random_cases_against_the_definition(found):
    average, many, cases, results = found
    num_classes = 2 if average == "binary" else 7
    expected = [reference(*rows(case, num_classes, many), average) for case in cases]
    np.testing.assert_allclose(results, expected, atol=FLOAT32)


@pytest.mark.peers
def test_random_cases_against_scikit_learn(found):
    metrics = pytest.importorskip("sklearn.metrics")
    average, many, cases, results = found
    expected = []
    for case in cases:
        true, predicted, weight = rows(case, 7, many) if many else case
        score = metrics.f1_score(true, predicted, average=average, sample_weight=weight, zero_division=0)
        expected.append(score)
    np.testing.assert_allclose(results, expected, atol=FLOAT32)


def test_contract(check_metric):
    generator = np.random.default_rng(1)
    y_true = generator.integers(0, 3, 31).astype("int32")
    y_pred = generator.normal(size=(31, 5)).astype("float32") + 2 * np.eye(5, dtype="float32")[y_true]
    weight = generator.integers(0, 3, 31).astype("float32")
    expected = reference(np.eye(5)[y_true], np.eye(5)[y_pred.argmax(-1)], weight, "macro")
    assert 0.3 < expected < 0.9
    check_metric(lambda **kwargs: F1Score(5, **kwargs), y_true, y_pred, weight, expected=expected, atol=FLOAT32)


@pytest.mark.parametrize("y_true", [[0, 2], [0, -100]])
def test_labels_that_are_no_classes_give_nan(y_true):
    metric = F1Score(2)
    metric.update_state(y_true, [0, 1])
    assert np.isnan(float(metric.result()))
    metric.reset_state()
    metric.update_state(y_true, [0, 1], sample_weight=[1, 0])
    assert float(metric.result()) == 1


def test_rows_that_are_not_0_and_1_give_nan():
    metric = F1Score(2, multi_label=True)
    metric.update_state([[0.5, 1.0]], [[1.0, 1.0]])
    assert np.isnan(float(metric.result()))


@pytest.mark.parametrize("average", ["binary", "macro", "micro", "weighted"])
def test_nothing_gives_zero(average):
    assert float(F1Score(2, average).result()) == 0


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"num_classes": 1}, ValueError, "`num_classes` must be at least 2. Received: num_classes=1."),
        (
            {"num_classes": 2, "average": "samples"},
            ValueError,
            "`average` must be one of ['binary', 'macro', 'micro', 'weighted']. Received: average='samples'.",
        ),
        (
            {"num_classes": 3, "average": "binary"},
            ValueError,
            '`average` must be "macro", "micro" or "weighted" unless there are two classes',
        ),
        ({"num_classes": 2, "multi_label": 1}, TypeError, "`multi_label` must be True or False. Received"),
    ],
)
def test_errors_of_arguments(arguments, error, text):
    with pytest.raises(error, match=re.escape(f"`F1Score`: {text}")):
        F1Score(**arguments)


def test_errors_of_shapes():
    with pytest.raises(ValueError, match=re.escape("`F1Score`: `y_true` must be (batch, 3). Received: y_true=(2,).")):
        F1Score(3, multi_label=True).update_state([0, 1], keras.ops.zeros((2, 3)))
    text = "`F1Score`: `y_pred` must be (batch, 3). Received: y_pred=(2, 2)."
    with pytest.raises(ValueError, match=re.escape(text)):
        F1Score(3, multi_label=True).update_state(keras.ops.zeros((2, 3)), keras.ops.zeros((2, 2)))
