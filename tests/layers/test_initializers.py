"""Initial weights, and arrays whose memory a variable takes over."""

import contextlib

import keras
import numpy as np
import pytest

from keras_bert_layers.layers.initializers import aligned_zeros, replaced_weights, shared_tensor, truncated_normal


def test_standard_deviation_and_cut():
    values = np.asarray(truncated_normal(0.3)((200, 99)))
    # Cut at two standard deviations, a normal distribution keeps 0.880 of its own.
    assert abs(values.std() - 0.88 * 0.3) < 0.005
    assert np.abs(values).max() <= 0.6


def test_what_numpy_draws(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    keras.utils.set_random_seed(5)
    initializer = truncated_normal(0.3)
    values = np.asarray(initializer((200, 99)))
    assert abs(values.std() - 0.88 * 0.3) < 0.005
    assert abs(values.mean()) < 0.01
    assert 0.599 < np.abs(values).max() <= np.float32(0.6)
    assert np.array_equal(values, initializer((200, 99))), "one instance draws the same"
    keras.utils.set_random_seed(5)
    assert np.array_equal(values, truncated_normal(0.3)((200, 99))), "and so does an equal seed"
    assert not np.array_equal(values, truncated_normal(0.3)((200, 99)))
    assert keras.backend.standardize_dtype(initializer((2, 3), "float16").dtype) == "float16"


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_saved_layer_names_an_initializer_of_keras(is_replaced, monkeypatch, tmp_path):
    with monkeypatch.context() as patched:
        patched.setattr(keras.backend, "backend", lambda: "jax")
        with replaced_weights() if is_replaced else contextlib.nullcontext():
            layer = keras.layers.Dense(3, kernel_initializer=truncated_normal(0.3))
    model = keras.Sequential([keras.Input((4,)), layer])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    kind = keras.initializers.Zeros if is_replaced else keras.initializers.TruncatedNormal
    assert type(loaded.layers[0].kernel_initializer) is kind
    assert getattr(loaded.layers[0].kernel_initializer, "stddev", 0.3) == 0.3
    np.testing.assert_array_equal(loaded.get_weights()[0], model.get_weights()[0])


def test_two_instances_draw_different_values():
    assert not np.array_equal(truncated_normal(0.3)((5, 3)), truncated_normal(0.3)((5, 3)))


@pytest.mark.parametrize("shape", [(), (3,), (5, 7)])
def test_a_variable_takes_over_the_memory(shape):
    array = aligned_zeros(shape)
    assert (array.shape, array.dtype, array.any()) == (shape, np.float32, False)
    array[...] = np.random.default_rng(0).normal(size=shape)
    expected = array.copy()
    variable = keras.Variable(np.ones(shape, "float32"))
    variable.assign(shared_tensor(array))
    del array
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(variable.value), expected)
    variable.assign_add(np.ones(shape, "float32"))
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(variable.value), expected + np.float32(1))
