"""`MaskedAccuracy` and `Perplexity` beside NumPy."""

import re

import keras
import numpy as np
import pytest

from keras_bert_layers.metrics import MaskedAccuracy, Perplexity

# One float32 division.
FLOAT32 = 1e-6
IGNORED = -100
NUM_CASES = 1000
# A float32 softmax, a sum of some 60 terms, and `exp` of it: relative.
FLOAT32_PERPLEXITY = 5e-6
VOCABULARY = 9


def random_case(generator):
    shape = tuple(generator.integers(1, 9, 2))
    true, other = generator.integers(0, 5, (2, *shape))
    predicted = np.where(generator.random(shape) < generator.random(), true, other)
    true = np.where(generator.random(shape) < 0.3, IGNORED, true)
    return true.astype("int32"), predicted.astype("int32"), generator.integers(0, 3, shape).astype("float32")


def reference(true, predicted, weight):
    counted = weight * (true != IGNORED)
    return (counted * (true == predicted)).sum() / counted.sum() if counted.any() else 0.0


@pytest.fixture(scope="module")
def cases():
    generator = np.random.default_rng(7)
    return [random_case(generator) for _ in range(NUM_CASES)]


@pytest.fixture(scope="module")
def found(cases, stream):
    return stream(MaskedAccuracy(), cases)


def test_contract(check_metric):
    generator = np.random.default_rng(1)
    y_true = generator.integers(0, 5, (7, 11)).astype("int32")
    y_pred = generator.normal(size=(7, 11, 5)).astype("float32") + 2 * np.eye(5, dtype="float32")[y_true]
    weight = generator.integers(0, 3, (7, 11)).astype("float32")
    y_true[2, 4] = y_true[3, :] = IGNORED
    expected = reference(y_true, y_pred.argmax(-1), weight)
    assert 0.3 < expected < 0.95
    check_metric(MaskedAccuracy, y_true, y_pred, weight, expected=expected, atol=FLOAT32)


def test_random_cases_against_the_definition(cases, found):
    np.testing.assert_allclose(found, [reference(*case) for case in cases], atol=FLOAT32)


@pytest.mark.peers
def test_random_cases_against_scikit_learn(cases, found):
    metrics = pytest.importorskip("sklearn.metrics")
    for (true, predicted, weight), result in zip(cases, found, strict=True):
        counted = weight * (true != IGNORED)
        if counted.any():
            columns = (part.reshape(-1) for part in (true, predicted))
            expected = metrics.accuracy_score(*columns, sample_weight=counted.reshape(-1))
            assert result == pytest.approx(expected, abs=FLOAT32)


def test_each_position_counts_alike_in_batches_of_other_lengths():
    metric, of_keras = MaskedAccuracy(), keras.metrics.SparseCategoricalAccuracy()
    for true, predicted, weight in (([[1]], [[1]], [[1.0]]), ([[1, 1, 1, 0]], [[1, 0, 0, 0]], [[1.0, 1.0, 1.0, 0.0]])):
        metric.update_state(true, predicted, weight)
        of_keras.update_state(true, keras.ops.one_hot(np.array(predicted), 2), weight)
    assert float(metric.result()) == 0.5
    assert float(of_keras.result()) != 0.5


def test_weights_of_rows_and_other_shapes():
    metric = MaskedAccuracy()
    metric.update_state([[1, 2], [3, 3]], [[1, 1], [3, 3]], sample_weight=[2.0, 0.0])
    assert float(metric.result()) == 0.5
    metric.update_state([1, 1], np.eye(3)[[1, 1]])
    metric.update_state([[[1, 1]]], np.eye(3)[[[[1, 1]]]])
    assert float(metric.result()) == 0.75


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_that_are_not_classes_give_nan(label):
    metric = MaskedAccuracy()
    metric.update_state([[label, 1]], np.eye(3)[[[1, 1]]], sample_weight=[[0.0, 1.0]])
    assert float(metric.result()) == 1
    metric.update_state([[label, 1]], np.eye(3)[[[1, 1]]])
    assert np.isnan(float(metric.result()))


def test_errors():
    text = "`MaskedAccuracy`: `y_pred` must be logits with one axis more than `y_true`, (2, 3), or integer labels"
    for wrong in (keras.ops.ones((2,), "int32"), keras.ops.ones((2, 3)), keras.ops.ones((2, 3, 4, 5))):
        with pytest.raises(ValueError, match=re.escape(text)):
            MaskedAccuracy().update_state(np.ones((2, 3), "int32"), wrong)
    text = "`MaskedAccuracy`: `sample_weight` must have the shape of `y_true`, (2,), or of its first axes. Received"
    with pytest.raises(ValueError, match=re.escape(text)):
        MaskedAccuracy().update_state([1, 1], [1, 1], sample_weight=keras.ops.ones((2, 3)))


def random_case_perplexity(generator):
    shape = tuple(generator.integers(1, 9, 2))
    true = generator.integers(0, VOCABULARY, shape)
    logits = generator.normal(size=(*shape, VOCABULARY)) * generator.choice([0.1, 1, 5]) + generator.choice([0, 50])
    true = np.where(generator.random(shape) < 0.3, IGNORED, true)
    true[0, 0] = 1
    weight = generator.integers(0, 3, shape)
    weight[0, 0] = 1
    return true.astype("int32"), logits.astype("float32"), weight.astype("float32")


def reference_perplexity(true, logits, weight):
    """Token by token, in float64."""
    total = 0.0
    weight = weight * (true != IGNORED)
    for place in zip(*weight.nonzero(), strict=True):
        probabilities = np.exp(np.float64(logits[place])) / np.exp(np.float64(logits[place])).sum()
        total -= weight[place] * np.log(probabilities[true[place]])
    return np.exp(total / weight.sum())


@pytest.fixture(scope="module")
def cases_perplexity():
    generator = np.random.default_rng(9)
    return [random_case_perplexity(generator) for _ in range(NUM_CASES)]


@pytest.fixture(scope="module")
def found_perplexity(cases_perplexity, stream):
    return stream(Perplexity(), cases_perplexity)


def test_perplexity_contract(check_metric):
    generator = np.random.default_rng(1)
    y_true = generator.integers(0, 5, (7, 11)).astype("int32")
    y_pred = generator.normal(size=(7, 11, 5)).astype("float32")
    weight = generator.integers(0, 3, (7, 11)).astype("float32")
    y_true[2, 4] = y_true[3, :] = IGNORED
    expected = reference_perplexity(y_true, y_pred, weight)
    check_metric(Perplexity, y_true, y_pred, weight, expected=expected, atol=FLOAT32_PERPLEXITY * expected)


def test_perplexity_random_cases_against_the_definition(cases_perplexity, found_perplexity):
    np.testing.assert_allclose(
        found_perplexity, [reference_perplexity(*case) for case in cases_perplexity], rtol=FLOAT32_PERPLEXITY
    )


@pytest.mark.peers
def test_perplexity_random_cases_against_scikit_learn(cases_perplexity, found_perplexity):
    metrics = pytest.importorskip("sklearn.metrics")
    special = pytest.importorskip("scipy.special")
    for (true, logits, weight), result in zip(cases_perplexity, found_perplexity, strict=True):
        counted = (weight > 0) & (true != IGNORED)
        probabilities = special.softmax(np.float64(logits[counted]), axis=-1)
        labels = np.arange(VOCABULARY)
        expected = metrics.log_loss(true[counted], probabilities, labels=labels, sample_weight=weight[counted])
        assert result == pytest.approx(np.exp(expected), rel=FLOAT32_PERPLEXITY)


def test_equal_logits_have_the_perplexity_of_all_tokens():
    metric = Perplexity()
    metric.update_state(np.ones((2, 3), "int32"), np.full((2, 3, 7), 1e4))
    assert float(metric.result()) == pytest.approx(7, rel=FLOAT32_PERPLEXITY)


@pytest.mark.parametrize("content", [np.nan, np.inf])
def test_padding_content_changes_nothing(content):
    metric = Perplexity()
    logits = np.zeros((1, 3, 4))
    logits[0, 1:] = content
    metric.update_state([[1, IGNORED, 2]], logits, sample_weight=[[1.0, 1.0, 0.0]])
    assert float(metric.result()) == pytest.approx(4, rel=FLOAT32_PERPLEXITY)


@pytest.mark.parametrize("label", [-1, 4])
def test_ids_outside_of_the_vocabulary_give_nan(label):
    metric = Perplexity()
    metric.update_state([[1, label]], np.zeros((1, 2, 4)))
    assert np.isnan(float(metric.result()))


def test_nothing_gives_nan():
    assert np.isnan(float(Perplexity().result()))


def test_perplexity_errors():
    text = "`Perplexity`: `y_pred` must be logits with one axis more than `y_true`, (2, 3). Received: y_pred=(2, 3)."
    with pytest.raises(ValueError, match=re.escape(text)):
        Perplexity().update_state(np.ones((2, 3), "int32"), keras.ops.ones((2, 3)))
