import keras
import numpy as np
import pytest

from keras_bert_layers.optimizers import LearningRateFinder, Warmup


@pytest.fixture
def model():
    """One weight, which learns to be 3; a rate above 1 makes it diverge."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
    model.compile(keras.optimizers.SGD(0.25, momentum=0.5), "mse", run_eagerly=True)
    return model


def fit(model, finder, num_rows=80):
    ones = np.ones((num_rows, 1))
    model.fit(ones, 3 * ones, batch_size=2, verbose=0, callbacks=[finder])
    return finder


def test_rates_and_losses(model):
    finder = fit(model, LearningRateFinder(1e-4, 1e-2, num_steps=5))
    np.testing.assert_allclose(finder.rates, np.geomspace(1e-4, 1e-2, 5))
    weight, speed, losses = 1.0, 0.0, []  # each step's own loss, of SGD with momentum
    for rate in finder.rates:
        losses.append((weight - 3) ** 2)
        speed = 0.5 * speed - rate * 2 * (weight - 3)
        weight += speed
    np.testing.assert_allclose(finder.losses, losses, rtol=1e-5)


def test_weights_and_rate_are_restored(model):
    model.fit(np.ones((2, 1)), np.ones((2, 1)), verbose=0)
    before = [variable.numpy() for variable in [*model.weights, *model.optimizer.variables]]
    fit(model, LearningRateFinder(1e-3, 1e-1, num_steps=7))
    for variable, value in zip([*model.weights, *model.optimizer.variables], before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    assert float(model.optimizer.learning_rate) == 0.25


def test_it_stops_where_the_loss_diverges(model):
    finder = fit(model, LearningRateFinder(1e-3, 1e3, num_steps=40))
    assert len(finder.rates) == len(finder.losses) < 40
    assert finder.smoothed[-1] > 4 * min(finder.smoothed)
    assert finder.suggestion == finder.rates[int(np.argmin(finder.smoothed))] / 10
    assert 1e-3 < finder.suggestion < 0.5


def test_a_loss_that_is_not_finite(model):
    model.compile("sgd", lambda y_true, y_pred: keras.ops.mean(y_pred) * np.nan, run_eagerly=True)
    finder = fit(model, LearningRateFinder())
    assert finder.rates == finder.losses == []
    with pytest.raises(RuntimeError, match="no suggestion before training"):
        _ = finder.suggestion


def test_refusals(model):
    with pytest.raises(ValueError, match=r"`highest` must be greater than `lowest` \(0.1\)"):
        LearningRateFinder(0.1, 0.1)
    with pytest.raises(ValueError, match="`num_steps` must be at least 2"):
        LearningRateFinder(num_steps=1)
    model.compile(keras.optimizers.SGD(Warmup(0.1, 3)), "mse")
    with pytest.raises(ValueError, match="`optimizer` must have a number as its learning rate.*Compile with a number"):
        fit(model, LearningRateFinder())
