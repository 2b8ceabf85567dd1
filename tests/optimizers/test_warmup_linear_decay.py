import keras
import numpy as np
import pytest

from keras_bert_layers.optimizers import WarmupLinearDecay


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


def test_optimizer_follows_it():
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
