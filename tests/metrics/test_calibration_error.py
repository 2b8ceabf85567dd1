"""`CalibrationError` beside a loop over bins in NumPy."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from keras_bert_layers.metrics import CalibrationError

# Sums of some 100 float32 probabilities.
FLOAT32 = 1e-5


def reference(probabilities, right, weights, num_bins):
    """Equation 3 of Guo et al., bin by bin."""
    error = 0.0
    for index in range(num_bins):
        inside = (probabilities > index / num_bins) & (probabilities <= (index + 1) / num_bins)
        if weights[inside].sum():
            accuracy = np.average(right[inside], weights=weights[inside])
            confidence = np.average(probabilities[inside], weights=weights[inside])
            error += weights[inside].sum() / weights.sum() * abs(accuracy - confidence)
    return error


def rows(seed=3, size=131, classes=5):
    random = np.random.default_rng(seed)
    logits = random.normal(0, 3, (size, classes)).astype("float32")
    return random.integers(0, classes, size).astype("int32"), logits, random.integers(0, 3, size).astype("float32")


@pytest.mark.parametrize("num_bins", [1, 7, 15])
def test_equals_the_loop(num_bins):
    labels, logits, weights = rows()
    probabilities = softmax(logits.astype("float64"), axis=1)
    right = (probabilities.argmax(axis=1) == labels).astype(float)
    metric = CalibrationError(num_bins)
    metric.update_state(labels, logits, weights)
    assert float(metric.result()) == pytest.approx(
        reference(probabilities.max(axis=1), right, weights, num_bins), abs=FLOAT32
    )


def test_several_labels_equal_the_loop():
    _, logits, weights = rows()
    labels = (np.random.default_rng(4).random(logits.shape) < 0.4).astype("int32")
    metric = CalibrationError(multi_label=True)
    metric.update_state(labels, logits, weights)
    expected = reference(expit(logits.astype("float64")).ravel(), labels.ravel(), np.repeat(weights, 5), 15)
    assert float(metric.result()) == pytest.approx(expected, abs=FLOAT32)


def test_contract(check_metric):
    labels, logits, weights = rows(size=40)
    probabilities = softmax(logits.astype("float64"), axis=1)
    right = (probabilities.argmax(axis=1) == labels).astype(float)
    expected = reference(probabilities.max(axis=1), right, weights, 15)
    check_metric(CalibrationError, labels, logits, weights, expected=expected, atol=FLOAT32)


def test_a_label_that_is_not_a_class_gives_nan():
    metric = CalibrationError()
    metric.update_state([7], [[0.0, 1.0]])
    assert np.isnan(float(metric.result()))
    metric.reset_state()
    assert float(metric.result()) == 0


class TestErrors:
    def test_bins(self):
        with pytest.raises(ValueError, match="`num_bins` must be at least 1"):
            CalibrationError(0)

    def test_logits(self):
        with pytest.raises(ValueError, match=r"`y_pred` must be logits \(batch, classes\)"):
            CalibrationError().update_state([1], [0.5])

    def test_columns(self):
        with pytest.raises(ValueError, match=r"`y_true` must be 0 and 1, \(batch, 3\)"):
            CalibrationError(multi_label=True).update_state([[1, 0]], [[0.5, 1.0, 2.0]])
