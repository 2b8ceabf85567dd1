import re

import keras
import numpy as np
import pytest

from keras_bert_layers.config import ACTIVATIONS
from keras_bert_layers.layers.dense import activation_function, gelu_erf, gelu_tanh, unfused

# One rounding of float32 values up to 12.
FLOAT32 = 2e-6
POINTS = np.linspace(-12, 12, 241).astype("float32")


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values(name, numpy_bert):
    ours = activation_function("Owner", name)(POINTS)
    np.testing.assert_allclose(np.asarray(ours), numpy_bert.ACTIVATIONS[name](POINTS.astype("float64")), atol=FLOAT32)


def test_the_two_gelus_differ_by_as_much_as_the_docs_state():
    difference = np.abs(np.asarray(gelu_erf(POINTS)) - np.asarray(gelu_tanh(POINTS))).max()
    assert 4.6e-4 < difference < 4.8e-4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_unfused_activations_keep_the_dtype_and_gelu_is_rounded_once(dtype):
    inputs = keras.ops.cast(np.linspace(-12, 12, 999), dtype)
    for name in ACTIVATIONS:
        activation = activation_function("test", name)
        found = unfused(activation, inputs)
        assert keras.backend.standardize_dtype(found.dtype) == dtype
        wide = activation(keras.ops.cast(inputs, "float32"))
        expected = keras.ops.cast(wide if name.startswith("gelu") else activation(inputs), dtype)
        np.testing.assert_array_equal(*(keras.ops.cast(values, "float32") for values in (found, expected)))


def test_gelu_alone_is_refused_with_a_cure():
    with pytest.raises(ValueError, match=re.escape("`Owner`: `activation` must be one of ['gelu_erf', 'gelu_tanh'")):
        activation_function("Owner", "gelu")
    with pytest.raises(ValueError, match=r'Use "gelu_erf" .* or "gelu_tanh"'):
        activation_function("Owner", "gelu")
