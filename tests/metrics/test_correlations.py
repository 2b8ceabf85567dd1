"""`PearsonCorrelation` and `SpearmanCorrelation` beside SciPy's numbers and NumPy."""

import re
from functools import cache

import keras
import numpy as np
import pytest

from keras_bert_layers.metrics import PearsonCorrelation, SpearmanCorrelation

# Sums of some sixty float32 products, merged.
FLOAT32 = 2e-6
NUM_CASES = 1000
# Sums of products of up to 60 ranks in float32.
FLOAT32_SPEARMAN = 2e-6
CAPACITY = 61


def reference(true, predicted, weight):
    """The definition, in float64."""
    true, predicted = (
        np.float64(column) - np.average(np.float64(column), weights=weight) for column in (true, predicted)
    )
    products = [
        np.sum(weight * one * other) for one, other in ((true, predicted), (true, true), (predicted, predicted))
    ]
    return products[0] / np.sqrt(products[1] * products[2])


@cache
def random_cases():
    """Numbers round 0 or far from it, weights of 1 to 3 for every second case."""
    generator = np.random.default_rng(5)
    cases = []
    for row in range(NUM_CASES):
        num_rows = generator.integers(3, 60)
        true = generator.normal(size=num_rows) + generator.choice([0, 10, 300])
        noise = generator.normal(size=num_rows) * generator.choice([0.01, 1, 10])
        predicted = generator.choice([-1, 1]) * true + noise
        weight = generator.integers(1, 4, num_rows) if row % 2 else np.ones(num_rows)
        cases.append(tuple(column.astype("float32") for column in (true, predicted, weight)))
    return cases


@pytest.fixture(scope="module")
def found(stream):
    return stream(PearsonCorrelation(), random_cases())


def test_contract(check_metric):
    generator = np.random.default_rng(1)
    y_true = generator.integers(0, 6, 31).astype("float32")
    y_pred = (y_true + generator.normal(size=31))[:, None].astype("float32")
    weight = generator.integers(0, 3, 31).astype("float32")
    expected = reference(y_true, y_pred[:, 0], weight)
    assert 0.3 < expected < 0.95
    check_metric(PearsonCorrelation, y_true, y_pred, weight, expected=expected, atol=FLOAT32)


def test_random_cases_against_the_definition(found):
    np.testing.assert_allclose(found, [reference(*case) for case in random_cases()], atol=FLOAT32)


@pytest.mark.peers
def test_random_cases_against_scipy(found):
    stats = pytest.importorskip("scipy.stats")
    for row, (case, result) in enumerate(zip(random_cases(), found, strict=True)):
        true, predicted = (np.repeat(column, np.int64(case[2])) for column in case[:2])
        expected = stats.pearsonr(np.float64(true), np.float64(predicted)).statistic
        assert result == pytest.approx(expected, abs=FLOAT32), row


def test_it_is_that_of_the_data_and_not_the_mean_of_its_batches():
    metric, of_keras = PearsonCorrelation(), keras.metrics.PearsonCorrelation()
    batches = [([0.0, 1.0], [1.0, 0.0]), ([10.0, 11.0], [11.0, 10.0])]
    for batch in batches:
        metric.update_state(*batch)
        of_keras.update_state(*batch)
    expected = np.corrcoef(*(np.concatenate(column) for column in zip(*batches, strict=True)))[0, 1]
    assert float(metric.result()) == pytest.approx(expected, abs=FLOAT32)
    assert float(of_keras.result()) == pytest.approx(-1, abs=FLOAT32)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6])
def test_a_constant_column_gives_nan(value):
    metric = PearsonCorrelation()
    generator = np.random.default_rng(2)
    for size in (1, 7, 100):
        metric.update_state(generator.normal(size=size), np.full(size, value))
    assert np.isnan(float(metric.result()))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_give_nan_unless_their_weight_is_0(value):
    metric = PearsonCorrelation()
    metric.update_state([1.0, 2.0, 3.0], [1.0, value, 2.0], sample_weight=[1, 0, 1])
    assert float(metric.result()) == pytest.approx(1, abs=FLOAT32)
    metric.update_state([1.0, 2.0, 3.0], [1.0, value, 2.0])
    assert np.isnan(float(metric.result()))


def test_nothing_gives_nan():
    assert np.isnan(float(PearsonCorrelation().result()))


def test_the_summed_states_of_two_replicas_give_nan():
    metric = PearsonCorrelation()
    metric.update_state([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    for variable in metric.variables:
        variable.assign(2 * variable.value)
    assert np.isnan(float(metric.result()))


@pytest.mark.parametrize("name", ["y_true", "y_pred"])
def test_errors(name):
    columns = {"y_true": keras.ops.ones((3,)), "y_pred": keras.ops.ones((3,)), name: keras.ops.ones((3, 2))}
    text = f"`PearsonCorrelation`: `{name}` must be one value per row, (batch,) or (batch, 1). Received: {name}=(3, 2)."
    with pytest.raises(ValueError, match=re.escape(text)):
        PearsonCorrelation().update_state(**columns)


def reference_spearman(true, predicted):
    """Pearson's correlation of ranks, each the count of smaller numbers and half of the equal ones."""
    ranks = [
        np.sum(column[:, None] > column, axis=1) + np.sum(column[:, None] == column, axis=1) / 2
        for column in (true, predicted)
    ]
    return np.corrcoef(*ranks)[0, 1]


@cache
def random_cases_spearman():
    """Numbers with few or many ties, some far from 0; no column is constant."""
    generator = np.random.default_rng(6)
    cases = []
    while len(cases) < NUM_CASES:
        num_rows = generator.integers(2, CAPACITY + 1)
        true = generator.normal(size=num_rows)
        columns = [true, true + generator.normal(size=num_rows) * generator.choice([0, 0.5, 10])]
        shift = generator.choice([0, 1000])
        columns = [np.float32(column.round(generator.integers(0, 4)) + shift) for column in columns]
        if all(len(set(column)) > 1 for column in columns):
            cases.append((*columns, np.ones(num_rows, "float32")))
    return cases


@pytest.fixture(scope="module")
def found_spearman(stream):
    return stream(SpearmanCorrelation(CAPACITY), random_cases_spearman())


def test_spearman_contract(check_metric):
    generator = np.random.default_rng(1)
    y_true = generator.integers(0, 6, 31).astype("float32")
    y_pred = (y_true + generator.normal(size=31))[:, None].astype("float32")
    weight = generator.integers(0, 3, 31).astype("float32")
    expected = reference_spearman(*(column[weight > 0] for column in (y_true, y_pred[:, 0])))
    assert 0.3 < expected < 0.95
    check_metric(
        lambda **kwargs: SpearmanCorrelation(37, **kwargs),
        y_true,
        y_pred,
        weight,
        expected=expected,
        atol=FLOAT32_SPEARMAN,
    )


def test_spearman_random_cases_against_the_definition(found_spearman):
    np.testing.assert_allclose(
        found_spearman, [reference_spearman(*case[:2]) for case in random_cases_spearman()], atol=FLOAT32_SPEARMAN
    )


@pytest.mark.peers
def test_spearman_random_cases_against_scipy(found_spearman):
    stats = pytest.importorskip("scipy.stats")
    expected = [stats.spearmanr(*case[:2]).statistic for case in random_cases_spearman()]
    np.testing.assert_allclose(found_spearman, expected, atol=FLOAT32_SPEARMAN)


def test_a_full_buffer_and_one_row_more():
    generator = np.random.default_rng(3)
    true, predicted = generator.normal(size=(2, 8))
    metric = SpearmanCorrelation(capacity=7)
    metric.update_state(true[:4], predicted[:4])
    metric.update_state(true[4:7], predicted[4:7])
    assert float(metric.result()) == pytest.approx(reference_spearman(true[:7], predicted[:7]), abs=FLOAT32_SPEARMAN)
    metric.update_state(true[7:], predicted[7:], sample_weight=[0])
    assert float(metric.result()) == pytest.approx(reference_spearman(true[:7], predicted[:7]), abs=FLOAT32_SPEARMAN)
    metric.update_state(true[7:], predicted[7:])
    assert np.isnan(float(metric.result()))
    metric.update_state(true, predicted)
    assert np.isnan(float(metric.result()))
    metric.reset_state()
    metric.update_state(true[1:], predicted[1:])
    assert float(metric.result()) == pytest.approx(reference_spearman(true[1:], predicted[1:]), abs=FLOAT32_SPEARMAN)


def test_more_rows_in_one_batch_than_fit():
    metric = SpearmanCorrelation(capacity=3)
    metric.update_state([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert np.isnan(float(metric.result()))


def test_many_rows():
    generator = np.random.default_rng(4)
    true = generator.integers(0, 6, 9999).astype("float32")
    predicted = np.float32(true + 4 * generator.normal(size=9999))
    ranks = [np.unique(column, return_inverse=True, return_counts=True)[1:] for column in (true, predicted)]
    ranks = [(np.cumsum(counts) - (counts - 1) / 2)[group] for group, counts in ranks]
    metric = SpearmanCorrelation()
    metric.update_state(true, predicted)
    assert float(metric.result()) == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=FLOAT32_SPEARMAN)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_spearman_numbers_that_are_not_finite_give_nan_unless_their_weight_is_0(value):
    metric = SpearmanCorrelation(9)
    metric.update_state([1.0, 2.0, 3.0], [1.0, value, 2.0], sample_weight=[1, 0, 1])
    assert float(metric.result()) == pytest.approx(1, abs=FLOAT32_SPEARMAN)
    metric.update_state([1.0, 2.0, 3.0], [1.0, value, 2.0])
    assert np.isnan(float(metric.result()))


@pytest.mark.parametrize("rows", [[], [1.0], [2.0, 2.0]])
def test_too_little_gives_nan(rows):
    metric = SpearmanCorrelation(9)
    metric.update_state(np.array(rows), np.arange(len(rows)))
    assert np.isnan(float(metric.result()))


def test_spearman_the_summed_states_of_two_replicas_give_nan():
    metric = SpearmanCorrelation(9)
    metric.update_state([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    for variable in metric.variables:
        variable.assign(2 * variable.value)
    assert np.isnan(float(metric.result()))


def test_spearman_errors():
    with pytest.raises(ValueError, match=re.escape("`SpearmanCorrelation`: `capacity` must be at least 1. Received")):
        SpearmanCorrelation(0)
    text = "`SpearmanCorrelation`: `y_pred` must be one value per row, (batch,) or (batch, 1). Received: y_pred=(3, 2)."
    with pytest.raises(ValueError, match=re.escape(text)):
        SpearmanCorrelation().update_state(keras.ops.ones((3,)), keras.ops.ones((3, 2)))
