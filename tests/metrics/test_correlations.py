import re
from functools import cache

import keras
import numpy as np
import pytest

from keras_bert_layers.metrics import PearsonCorrelation

# Sums of some sixty float32 products, merged.
FLOAT32 = 2e-6
NUM_CASES = 1000


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
