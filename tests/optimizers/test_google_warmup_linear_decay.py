import keras
import numpy as np
import pytest

from keras_bert_layers.optimizers import GoogleWarmupLinearDecay, WarmupLinearDecay

PEAK, STEPS = 3e-5, 23


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


def test_keras_saves_it():
    rate = GoogleWarmupLinearDecay(PEAK, STEPS, num_warmup_steps=5)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(rate))
    assert type(again) is GoogleWarmupLinearDecay
    assert again.get_config() == rate.get_config()
