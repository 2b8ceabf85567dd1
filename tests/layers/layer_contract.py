"""The contract that every layer of the package keeps, in one place; each layer's test calls `check_layer` once."""

import inspect
import json
from collections import defaultdict

import keras
import numpy as np

# The same float32 sums in another order (XLA, a graph).
ROUNDING = 2e-6
# bfloat16 keeps 8 bits, float16 11: half a unit in the last place of values up to about 4, through some ten products.
HALF_PRECISION = {"mixed_bfloat16": 0.1, "mixed_float16": 0.02}


def check_layer(make, inputs, *, output_shape, tmp_path, output_dtype=None, num_weights, places=..., **call_arguments):
    """Checks config, build, eager = symbolic, dtype policies, `.keras` round trip, gradients and jit.

    Args:
        make: makes the layer from keyword arguments such as `dtype`; without dropout, so that calls can be compared.
        inputs: call argument name -> NumPy array, the first positional one first.
        output_shape: what a call must give.
        tmp_path: where to save.
        output_dtype: the dtype of the output under every policy; None for the policy's compute dtype.
        num_weights: how many weights a built layer has.
        places: where the output has a meaning, an index of its array; all places if left out.
        **call_arguments: call arguments that are not tensors.
    """
    keras.utils.set_random_seed(3)
    layer = make()
    expected = np.asarray(_call(layer, inputs, call_arguments))
    assert expected.shape == output_shape
    assert np.isfinite(expected).all()
    _check_config(layer)
    _check_build(make, layer, next(iter(inputs.values())).shape, num_weights)
    _check_symbolic(layer, inputs, call_arguments, expected, tmp_path, places)
    _check_policies(make, layer, inputs, call_arguments, expected, output_dtype)
    if num_weights:
        _check_gradients(layer, inputs, call_arguments)
    _check_jit(layer, inputs, call_arguments, expected, places)


def _call(layer, inputs, call_arguments):
    (first, value), *others = inputs.items()
    assert first == next(iter(inspect.signature(layer.call).parameters))
    tensors = {name: keras.ops.convert_to_tensor(other) for name, other in others}
    return layer(keras.ops.convert_to_tensor(value), **tensors, **call_arguments)


def _check_config(layer):
    config = layer.get_config()
    signature = inspect.signature(type(layer).__init__).parameters
    arguments = {n for n, p in signature.items() if n != "self" and p.kind is not inspect.Parameter.VAR_KEYWORD}
    assert arguments <= set(config)
    assert json.loads(json.dumps(config)) == config
    assert type(layer).from_config(config).get_config() == config
    assert keras.saving.get_registered_name(type(layer)) == f"keras_bert_layers>{type(layer).__name__}"


def _check_build(make, layer, input_shape, num_weights):
    assert len(layer.weights) == num_weights
    assert len({weight.path for weight in layer.weights}) == num_weights
    # One initializer instance for two weights of equal shape would give them equal values.
    by_shape = defaultdict(list)
    for weight in layer.weights:
        if np.std(weight) > 0:
            by_shape[tuple(weight.shape)].append(np.asarray(weight))
    for values in by_shape.values():
        assert all(not np.array_equal(values[i], values[j]) for i in range(len(values)) for j in range(i))
    again = make(name=layer.name)
    again.build(input_shape)
    assert [weight.path for weight in again.weights] == [weight.path for weight in layer.weights]


def _symbolic_input(name, array):
    """Axes of the batch and of the sequence are left open, the width is not."""
    width = array.shape[2:] if array.ndim > 2 or array.dtype.kind in "iub" else array.shape[1:]
    open_axes = (None,) * (array.ndim - 1 - len(width))
    return keras.Input(shape=(*open_axes, *width), dtype=array.dtype.name, name=name)


def _check_symbolic(layer, inputs, call_arguments, expected, tmp_path, places):
    import tensorflow as tf

    symbols = {name: _symbolic_input(name, array) for name, array in inputs.items()}
    first, *others = symbols
    output = layer(symbols[first], **{name: symbols[name] for name in others}, **call_arguments)
    assert len(output.shape) == expected.ndim
    assert output.shape[-1] in (expected.shape[-1], None)  # open where the last axis is not the width
    model = keras.Model(symbols, output)
    # In a graph whose axes are open, as in `predict`, which takes longer to prepare.
    specs = {name: tf.TensorSpec(symbol.shape, symbol.dtype) for name, symbol in symbols.items()}
    found = tf.function(model, input_signature=[specs])({name: tf.constant(array) for name, array in inputs.items()})
    np.testing.assert_allclose(np.asarray(found)[places], expected[places], atol=ROUNDING)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(loaded(inputs)), np.asarray(model(inputs)))


def _check_policies(make, layer, inputs, call_arguments, expected, output_dtype):
    for policy, tolerance in HALF_PRECISION.items():
        half = make(dtype=policy)
        _call(half, inputs, call_arguments)
        half.set_weights(layer.get_weights())
        output = _call(half, inputs, call_arguments)
        assert keras.backend.standardize_dtype(output.dtype) == (output_dtype or policy.removeprefix("mixed_"))
        assert all(weight.dtype == "float32" for weight in half.weights)
        np.testing.assert_allclose(np.asarray(keras.ops.cast(output, "float32")), expected, atol=tolerance)


def _check_gradients(layer, inputs, call_arguments):
    import tensorflow as tf

    generator = np.random.default_rng(2)
    with tf.GradientTape() as tape:
        output = _call(layer, inputs, call_arguments)
        # Uneven weights, as a plain sum over a LayerNorm has no gradient.
        loss = keras.ops.sum(keras.ops.cast(output, "float32") * generator.normal(size=output.shape).astype("float32"))
    gradients = tape.gradient(loss, [weight.value for weight in layer.trainable_weights])
    for weight, gradient in zip(layer.trainable_weights, gradients, strict=True):
        assert gradient is not None, weight.path
        values = np.asarray(tf.convert_to_tensor(gradient))
        assert np.isfinite(values).all(), weight.path
        assert np.abs(values).max() > 0, weight.path


def _check_jit(layer, inputs, call_arguments, expected, places):
    import tensorflow as tf

    compiled = tf.function(lambda given: _call(layer, given, call_arguments), jit_compile=True)
    output = compiled({name: tf.convert_to_tensor(array) for name, array in inputs.items()})
    np.testing.assert_allclose(np.asarray(output)[places], expected[places], atol=ROUNDING)
