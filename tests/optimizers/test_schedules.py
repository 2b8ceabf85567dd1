"""Learning rate schedules beside their formulas."""

import keras
import numpy as np
import pytest

from keras_bert_layers.optimizers import GoogleWarmupLinearDecay, Warmup, WarmupLinearDecay, WarmupStableDecay

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


@pytest.mark.parametrize("num_warmup_steps", [0, 1, 7])
def test_against_interpolation(num_warmup_steps):
    rate = WarmupLinearDecay(3e-5, 23, num_warmup_steps=num_warmup_steps)
    steps = np.arange(30)
    knots = ([0, num_warmup_steps, 23], [0, 3e-5, 0]) if num_warmup_steps else ([0, 23], [3e-5, 0])
    np.testing.assert_allclose([float(rate(step)) for step in steps], np.interp(steps, *knots), atol=1e-11)


def test_keras_saves_it():
    rate = WarmupLinearDecay(3e-5, 23, num_warmup_steps=5)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(rate))
    assert again.get_config() == rate.get_config()


def test_linear_optimizer_follows_it():
    optimizer = keras.optimizers.SGD(WarmupLinearDecay(1.0, 4, num_warmup_steps=1))
    weight = keras.Variable([0.0])
    for _ in range(6):
        optimizer.apply([keras.ops.ones(1)], [weight])
    assert float(weight[0]) == pytest.approx(-(0 + 1 + 2 / 3 + 1 / 3))


@pytest.mark.parametrize(("peak", "num_steps"), [(0.0, 5), (-1.0, 5), (1.0, 0)])
def test_out_of_range(peak, num_steps):
    with pytest.raises(ValueError, match="`WarmupLinearDecay`: `(peak|num_steps)` must be"):
        WarmupLinearDecay(peak, num_steps)


@pytest.mark.parametrize(
    ("num_warmup_steps", "rule"),
    [(-1, "at least 0"), (5, r"less than `num_steps` \(5\)"), (9, "less than `num_steps`")],
)
def test_warmup_out_of_range(num_warmup_steps, rule):
    with pytest.raises(ValueError, match=rf"`num_warmup_steps` must be {rule}.*Received: num_warmup_steps="):
        WarmupLinearDecay(1.0, 5, num_warmup_steps=num_warmup_steps)


def test_warmup_share_is_refused():
    with pytest.raises(TypeError, match="`num_warmup_steps` must be an integer. Received: num_warmup_steps=0.1"):
        WarmupLinearDecay(1.0, 5, num_warmup_steps=0.1)


@pytest.mark.parametrize("num_warmup_steps", [0, 1, 7])
def test_warm_up_stands_in_place_of_a_decay_from_the_start(num_warmup_steps):
    rate = GoogleWarmupLinearDecay(PEAK, STEPS, num_warmup_steps=num_warmup_steps)
    decay = keras.optimizers.schedules.PolynomialDecay(PEAK, STEPS, end_learning_rate=0.0, power=1.0)
    expected = [PEAK * step / num_warmup_steps if step < num_warmup_steps else float(decay(step)) for step in range(30)]
    np.testing.assert_allclose([float(rate(step)) for step in range(30)], expected, atol=1e-11)


def test_it_differs_from_ours_after_the_warm_up():
    google, ours = (kind(1.0, 10, num_warmup_steps=5) for kind in (GoogleWarmupLinearDecay, WarmupLinearDecay))
    assert [round(float(google(step)), 3) for step in (4, 5, 9, 10)] == [0.8, 0.5, 0.1, 0.0]
    assert [round(float(ours(step)), 3) for step in (4, 5, 9, 10)] == [0.8, 1.0, 0.2, 0.0]


def test_google_keras_saves_it():
    rate = GoogleWarmupLinearDecay(PEAK, STEPS, num_warmup_steps=5)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(rate))
    assert type(again) is GoogleWarmupLinearDecay
    assert again.get_config() == rate.get_config()


@pytest.mark.parametrize(("num_warmup_steps", "num_decay_steps"), [(0, 1), (1, 5), (7, 9), (7, 16), (0, 23)])
def test_closed_form(num_warmup_steps, num_decay_steps):
    rate = WarmupStableDecay(PEAK, STEPS, num_warmup_steps=num_warmup_steps, num_decay_steps=num_decay_steps)

    def expected(step):
        if step < num_warmup_steps:
            return PEAK * step / num_warmup_steps
        if step < STEPS - num_decay_steps:
            return PEAK
        return PEAK * (1 - np.sqrt(min(num_decay_steps, step - STEPS + num_decay_steps) / num_decay_steps))

    steps = range(30)
    np.testing.assert_allclose([float(rate(step)) for step in steps], [expected(step) for step in steps], atol=1e-11)


def test_it_does_not_depend_on_the_end_before_the_decay():
    short, long = (WarmupStableDecay(PEAK, steps, num_warmup_steps=4, num_decay_steps=6) for steps in (20, 500))
    assert [float(short(step)) for step in range(15)] == [float(long(step)) for step in range(15)]


def test_stable_keras_saves_it_in_an_optimizer():
    optimizer = keras.optimizers.SGD(WarmupStableDecay(PEAK, STEPS, num_warmup_steps=2, num_decay_steps=5))
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.get_config() == optimizer.get_config()


def test_stable_optimizer_follows_it():
    optimizer = keras.optimizers.SGD(WarmupStableDecay(1.0, 8, num_warmup_steps=2, num_decay_steps=4))
    weight = keras.Variable([0.0])
    for _ in range(9):
        optimizer.apply([keras.ops.ones(1)], [weight])
    falling = sum(1 - np.sqrt(share) for share in (0, 0.25, 0.5, 0.75, 1))
    assert float(weight[0]) == pytest.approx(-(0 + 0.5 + 1 + 1 + falling))


def test_stable_refusals():
    rule = r"`num_decay_steps` must be at most `num_steps` \(10\) less `num_warmup_steps` \(4\). Received.*=7"
    with pytest.raises(ValueError, match=rule):
        WarmupStableDecay(1.0, 10, num_warmup_steps=4, num_decay_steps=7)
    with pytest.raises(ValueError, match="`num_decay_steps` must be at least 1"):
        WarmupStableDecay(1.0, 10, num_decay_steps=0)
    with pytest.raises(TypeError, match="`num_decay_steps` must be an integer. Received: num_decay_steps=0.1"):
        WarmupStableDecay(1.0, 10, num_decay_steps=0.1)
