import keras
import numpy as np
import pytest

from keras_bert_layers.optimizers import WarmupStableDecay

PEAK, STEPS = 3e-5, 23


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


def test_keras_saves_it_in_an_optimizer():
    optimizer = keras.optimizers.SGD(WarmupStableDecay(PEAK, STEPS, num_warmup_steps=2, num_decay_steps=5))
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.get_config() == optimizer.get_config()


def test_optimizer_follows_it():
    optimizer = keras.optimizers.SGD(WarmupStableDecay(1.0, 8, num_warmup_steps=2, num_decay_steps=4))
    weight = keras.Variable([0.0])
    for _ in range(9):
        optimizer.apply([keras.ops.ones(1)], [weight])
    falling = sum(1 - np.sqrt(share) for share in (0, 0.25, 0.5, 0.75, 1))
    assert float(weight[0]) == pytest.approx(-(0 + 0.5 + 1 + 1 + falling))


def test_refusals():
    rule = r"`num_decay_steps` must be at most `num_steps` \(10\) less `num_warmup_steps` \(4\). Received.*=7"
    with pytest.raises(ValueError, match=rule):
        WarmupStableDecay(1.0, 10, num_warmup_steps=4, num_decay_steps=7)
    with pytest.raises(ValueError, match="`num_decay_steps` must be at least 1"):
        WarmupStableDecay(1.0, 10, num_decay_steps=0)
    with pytest.raises(TypeError, match="`num_decay_steps` must be an integer. Received: num_decay_steps=0.1"):
        WarmupStableDecay(1.0, 10, num_decay_steps=0.1)
