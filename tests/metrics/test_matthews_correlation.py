import re
from functools import cache

import keras
import numpy as np
import pytest

from keras_bert_layers.metrics import MatthewsCorrelation

# Counts are exact; a few float32 products, a square root and a division are not.
FLOAT32 = 2e-6
NUM_CASES = 1000
SIZES = (2, 3, 7)


def reference(true, predicted, weight):
    """Pearson's correlation of the indicators of all classes, which the formula of counts is a short form of."""
    classes = np.arange(7)
    true, predicted = (np.float64(ids[:, None] == classes) for ids in (true, predicted))
    mean_true, mean_predicted = (np.average(part, axis=0, weights=weight) for part in (true, predicted))

    def covariance(one, other):
        return (weight[:, None] * one * other).sum()

    true, predicted = true - mean_true, predicted - mean_predicted
    spread = covariance(true, true) * covariance(predicted, predicted)
    return covariance(true, predicted) / np.sqrt(spread) if spread > FLOAT32**2 else 0.0


@cache
def random_cases(num_classes):
    generator = np.random.default_rng(num_classes)
    cases = []
    for _ in range(NUM_CASES // len(SIZES) + 1):
        num_rows, used = generator.integers(1, 60), generator.integers(1, num_classes + 1)
        true, other = generator.integers(0, used, (2, num_rows)).astype("int32")
        predicted = np.where(generator.random(num_rows) < generator.random(), true, other)
        cases.append((true, predicted, generator.integers(1, 4, num_rows).astype("float32")))
    return cases


@pytest.fixture(scope="module", params=SIZES)
def found(request, stream):
    return random_cases(request.param), stream(MatthewsCorrelation(request.param), random_cases(request.param))


def test_contract(check_metric):
    generator = np.random.default_rng(1)
    y_true = generator.integers(0, 3, 31).astype("int32")
    y_pred = generator.normal(size=(31, 3)).astype("float32") + 2 * np.eye(3, dtype="float32")[y_true]
    weight = generator.integers(0, 3, 31).astype("float32")
    expected = reference(y_true, y_pred.argmax(-1), weight)
    assert 0.3 < expected < 0.9
    check_metric(
        lambda **kwargs: MatthewsCorrelation(3, **kwargs), y_true, y_pred, weight, expected=expected, atol=FLOAT32
    )


def test_random_cases_against_the_definition(found):
    expected = [reference(*case) for case in found[0]]
    np.testing.assert_allclose(found[1], expected, atol=FLOAT32)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")
def test_random_cases_against_scikit_learn(found):
    metrics = pytest.importorskip("sklearn.metrics")
    expected = [metrics.matthews_corrcoef(*case[:2], sample_weight=case[2]) for case in found[0]]
    np.testing.assert_allclose(found[1], expected, atol=FLOAT32)


def test_many_rows_of_one_class():
    """Products of such counts have more digits than float32."""
    counts = np.array([[999_000, 700], [200, 100]], "float32")
    metric = MatthewsCorrelation()
    metric.counts.assign(counts)
    (tn, fp), (fn, tp) = counts.astype("float64")
    expected = (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    np.testing.assert_allclose(float(metric.result()), expected, rtol=FLOAT32)


def test_columns():
    metric = MatthewsCorrelation()
    metric.update_state([[0], [1], [1]], keras.ops.convert_to_tensor([[0], [1], [1]]), sample_weight=[[1], [1], [2]])
    assert float(metric.result()) == pytest.approx(1, abs=FLOAT32)


@pytest.mark.parametrize("y_true", [[0, 2], [0, -1], [0.0, 0.5]])
def test_labels_that_are_no_classes_give_nan(y_true):
    metric = MatthewsCorrelation()
    metric.update_state(y_true, [0, 1])
    assert np.isnan(float(metric.result()))
    metric.reset_state()
    metric.update_state(y_true, [0, 1], sample_weight=[1, 0])
    assert float(metric.result()) == 0


def test_nothing_gives_zero():
    assert float(MatthewsCorrelation().result()) == 0


@pytest.mark.parametrize(
    ("num_classes", "error", "text"),
    [(1, ValueError, "be at least 2. Received: num_classes=1."), (2.0, TypeError, "be an integer. Received")],
)
def test_errors_of_arguments(num_classes, error, text):
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
def test_errors_of_shapes(true_shape, pred_shape, text):
    with pytest.raises(ValueError, match=re.escape(f"`MatthewsCorrelation`: {text}")):
        MatthewsCorrelation().update_state(np.zeros(true_shape, "int32"), keras.ops.zeros(pred_shape))


def test_errors_of_weights():
    text = "`MatthewsCorrelation`: `sample_weight` must be (batch,) or (batch, 1). Received: sample_weight=(2, 3)."
    with pytest.raises(ValueError, match=re.escape(text)):
        MatthewsCorrelation().update_state([0, 1], [0, 1], sample_weight=keras.ops.ones((2, 3)))
