"""`F1Score` and `MatthewsCorrelation` beside scikit-learn's numbers and NumPy."""

import re
from functools import cache

import keras
import numpy as np
import pytest

from keras_bert_layers.metrics import F1Score, MatthewsCorrelation

# A float32 division for each of at most seven classes.
FLOAT32 = 1e-6
NUM_CASES = 150  # of each of the seven below
CASES = [("binary", 2, False), *((average, 7, many) for average in ("macro", "micro", "weighted") for many in (0, 1))]
# Counts are exact; a few float32 products, a square root and a division are not.
FLOAT32_MATTHEWS = 2e-6
NUM_CASES_MATTHEWS = 1000
SIZES = (2, 3, 7)


def reference(true, predicted, weight, average):
    """From rows of 0 and 1; of one class per text if each row has one 1."""
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
def test_labels_that_are_not_classes_give_nan(y_true):
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


def reference_matthews(true, predicted, weight):
    """Pearson's correlation of the indicators of all classes, which the formula of counts is a short form of."""
    classes = np.arange(7)
    true, predicted = (np.float64(ids[:, None] == classes) for ids in (true, predicted))
    mean_true, mean_predicted = (np.average(part, axis=0, weights=weight) for part in (true, predicted))

    def covariance(one, other):
        return (weight[:, None] * one * other).sum()

    true, predicted = true - mean_true, predicted - mean_predicted
    spread = covariance(true, true) * covariance(predicted, predicted)
    return covariance(true, predicted) / np.sqrt(spread) if spread > FLOAT32_MATTHEWS**2 else 0.0


@cache
def random_cases_matthews(num_classes):
    generator = np.random.default_rng(num_classes)
    cases = []
    for _ in range(NUM_CASES_MATTHEWS // len(SIZES) + 1):
        num_rows, used = generator.integers(1, 60), generator.integers(1, num_classes + 1)
        true, other = generator.integers(0, used, (2, num_rows)).astype("int32")
        predicted = np.where(generator.random(num_rows) < generator.random(), true, other)
        cases.append((true, predicted, generator.integers(1, 4, num_rows).astype("float32")))
    return cases


@pytest.fixture(scope="module", params=SIZES)
def found_matthews(request, stream):
    return random_cases_matthews(request.param), stream(
        MatthewsCorrelation(request.param), random_cases_matthews(request.param)
    )


def test_matthews_contract(check_metric):
    generator = np.random.default_rng(1)
    y_true = generator.integers(0, 3, 31).astype("int32")
    y_pred = generator.normal(size=(31, 3)).astype("float32") + 2 * np.eye(3, dtype="float32")[y_true]
    weight = generator.integers(0, 3, 31).astype("float32")
    expected = reference_matthews(y_true, y_pred.argmax(-1), weight)
    assert 0.3 < expected < 0.9
    check_metric(
        lambda **kwargs: MatthewsCorrelation(3, **kwargs),
        y_true,
        y_pred,
        weight,
        expected=expected,
        atol=FLOAT32_MATTHEWS,
    )


def test_matthews_random_cases_against_the_definition(found_matthews):
    expected = [reference_matthews(*case) for case in found_matthews[0]]
    np.testing.assert_allclose(found_matthews[1], expected, atol=FLOAT32_MATTHEWS)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")
def test_matthews_random_cases_against_scikit_learn(found_matthews):
    metrics = pytest.importorskip("sklearn.metrics")
    expected = [metrics.matthews_corrcoef(*case[:2], sample_weight=case[2]) for case in found_matthews[0]]
    np.testing.assert_allclose(found_matthews[1], expected, atol=FLOAT32_MATTHEWS)


def test_many_rows_of_one_class():
    """Products of such counts have more digits than float32."""
    counts = np.array([[999_000, 700], [200, 100]], "float32")
    metric = MatthewsCorrelation()
    metric.counts.assign(counts)
    (tn, fp), (fn, tp) = counts.astype("float64")
    expected = (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    np.testing.assert_allclose(float(metric.result()), expected, rtol=FLOAT32_MATTHEWS)


def test_columns():
    metric = MatthewsCorrelation()
    metric.update_state([[0], [1], [1]], keras.ops.convert_to_tensor([[0], [1], [1]]), sample_weight=[[1], [1], [2]])
    assert float(metric.result()) == pytest.approx(1, abs=FLOAT32_MATTHEWS)


@pytest.mark.parametrize("y_true", [[0, 2], [0, -1], [0.0, 0.5]])
def test_matthews_labels_that_are_not_classes_give_nan(y_true):
    metric = MatthewsCorrelation()
    metric.update_state(y_true, [0, 1])
    assert np.isnan(float(metric.result()))
    metric.reset_state()
    metric.update_state(y_true, [0, 1], sample_weight=[1, 0])
    assert float(metric.result()) == 0


def test_matthews_nothing_gives_zero():
    assert float(MatthewsCorrelation().result()) == 0


@pytest.mark.parametrize(
    ("num_classes", "error", "text"),
    [(1, ValueError, "be at least 2. Received: num_classes=1."), (2.0, TypeError, "be an integer. Received")],
)
def test_matthews_errors_of_arguments(num_classes, error, text):
    with pytest.raises(error, match=re.escape(f"`MatthewsCorrelation`: `num_classes` must {text}")):
        MatthewsCorrelation(num_classes)


@pytest.mark.parametrize(
    ("true_shape", "pred_shape", "text"),
    [
        ((5, 2), (5, 2), "`y_true` must be labels (batch,) or (batch, 1). Received: y_true=(5, 2)."),
        (
            (5,),
            (5, 3),
            "`y_pred` must be logits (batch, 2) or integer labels (batch,). Received: y_pred=((5, 3),",
        ),
        (
            (5,),
            (5, 1),
            "`y_pred` must be logits (batch, 2) or integer labels (batch,). Received: y_pred=((5, 1),",
        ),
    ],
)
def test_matthews_errors_of_shapes(true_shape, pred_shape, text):
    with pytest.raises(ValueError, match=re.escape(f"`MatthewsCorrelation`: {text}")):
        MatthewsCorrelation().update_state(np.zeros(true_shape, "int32"), keras.ops.zeros(pred_shape))


def test_errors_of_weights():
    text = "`MatthewsCorrelation`: `sample_weight` must be (batch,) or (batch, 1). Received: sample_weight=(2, 3)."
    with pytest.raises(ValueError, match=re.escape(text)):
        MatthewsCorrelation().update_state([0, 1], [0, 1], sample_weight=keras.ops.ones((2, 3)))
