import keras
import numpy as np
import pytest

from keras_bert_layers.optimizers import Warmup

schedules = keras.optimizers.schedules
PEAK, STEPS, WARMUP = 3e-5, 23, 7

# After the warm-up, by the share of the steps that are done.
CLOSED_FORMS = {
    "cosine": (schedules.CosineDecay(PEAK, STEPS), lambda done: PEAK * (1 + np.cos(np.pi * done)) / 2),
    "polynomial": (
        schedules.PolynomialDecay(PEAK, STEPS, 1e-6, power=2.0),
        lambda done: (PEAK - 1e-6) * (1 - done) ** 2 + 1e-6,
    ),
    "constant": (PEAK, lambda done: PEAK + 0 * done),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms(name):
    schedule, after = CLOSED_FORMS[name]
    rate, steps = Warmup(schedule, WARMUP), np.arange(40)
    expected = np.where(steps < WARMUP, PEAK * steps / WARMUP, after(np.clip((steps - WARMUP) / STEPS, 0, 1)))
    np.testing.assert_allclose([float(rate(step)) for step in steps], expected, atol=1e-11)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_keras_saves_it_in_an_optimizer(name):
    optimizer = keras.optimizers.SGD(Warmup(CLOSED_FORMS[name][0], 3))
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.get_config() == optimizer.get_config()


def test_optimizer_follows_it():
    optimizer, weight = keras.optimizers.SGD(Warmup(1.0, 2)), keras.Variable([0.0])
    for _ in range(4):
        optimizer.apply([keras.ops.ones(1)], [weight])
    assert float(weight[0]) == pytest.approx(-(0 + 0.5 + 1 + 1))


def test_refusals():
    with pytest.raises(TypeError, match="`Warmup`: `schedule` must be a number. Received: schedule='cosine'"):
        Warmup("cosine", 3)
    with pytest.raises(ValueError, match="`num_steps` must be at least 1"):
        Warmup(1.0, 0)
