"""Our optimizers beside NumPy, on the backend that KERAS_BACKEND names, over a hundred steps and a `.keras` file."""

from collections import defaultdict

import keras
import numpy as np
import numpy_optimizers
import pytest

from keras_bert_layers.optimizers import WarmupLinearDecay, adamw, google_adamw, lamb

STEPS, SAVED_AFTER, COMPARED_AFTER, DECAY, CLIP, PEAK = 100, 43, 53, 0.2, 9.0, 2e-3
# Of the largest weight: float32 roundings of a hundred steps, and TensorFlow's operation for Adam, which takes
# 1 - 0.999 in float32 and so makes each step 6e-6 times too long. Measured 5e-7 at most.
CLOSE = 1e-6
KINDS = {
    "adamw": (adamw, numpy_optimizers.decayed_adam),
    "google_adamw": (google_adamw, numpy_optimizers.google_adamw),
    "lamb": (lamb, numpy_optimizers.decayed_lamb),
}


def small_model():
    """Weights: kernel, bias, gamma, beta, kernel; "second" is left out by name in some tests."""
    return keras.Sequential(
        [
            keras.Input((5,)),
            keras.layers.Dense(3, name="first"),
            keras.layers.LayerNormalization(name="norm"),
            keras.layers.Dense(2, use_bias=False, name="second"),
        ]
    )


def data(num_gradients, seed=0):
    """Weights, and gradients whose norm is often above `CLIP`."""
    rng = np.random.default_rng(seed)
    shapes = [(5, 3), (3,), (3,), (3,), (3, 2)]
    weights = [rng.normal(size=shape).astype("float32") for shape in shapes]
    sizes = rng.uniform(0.1, 3.0, size=num_gradients)
    return weights, [[(size * rng.normal(size=shape)).astype("float32") for shape in shapes] for size in sizes]


def expected(name, weights, gradients, *, undecayed, unadapted):
    """The weights after all steps, in float64."""
    update, states = KINDS[name][1], defaultdict(lambda: defaultdict(float))
    weights = [np.float64(weight) for weight in weights]
    for step, row in enumerate(gradients):
        rate = np.interp(step, [0, 10, STEPS + 20], [0, PEAK, 0])
        share = min(1.0, CLIP / np.sqrt(sum(np.sum(np.float64(gradient) ** 2) for gradient in row)))
        for i, gradient in enumerate(row):
            options = {"adapts": i not in unadapted} if name == "lamb" else {}
            decay = 0.0 if i in undecayed else DECAY
            weights[i] = update(
                weights[i], share * np.float64(gradient), states[i], step + 1, rate=rate, decay=decay, **options
            )
    return weights


def compiled(name, weights, **options):
    model = small_model()
    model.set_weights(weights)
    schedule = WarmupLinearDecay(PEAK, STEPS + 20, num_warmup_steps=10)
    model.compile(KINDS[name][0](schedule, weight_decay=DECAY, clip_norm=CLIP, **options), "mse")
    return model


def apply(model, gradients):
    for row in gradients:
        model.optimizer.apply([keras.ops.array(gradient) for gradient in row], model.trainable_variables)


def assert_close(weights, others, tolerance):
    scale = max(np.abs(weight).max() for weight in others)
    difference = max(np.abs(weight - other).max() for weight, other in zip(weights, others, strict=True))
    assert difference < tolerance * scale, difference / scale


LEFT_OUT = {
    "biases and norms": ({}, {1, 2, 3}),
    "by name": ({"exclude_from_weight_decay": ["second", "norm/"]}, {2, 3, 4}),
}


@pytest.mark.parametrize("left_out", LEFT_OUT)
@pytest.mark.parametrize("name", KINDS)
def test_a_hundred_steps_and_a_file(name, left_out, tmp_path):
    options, undecayed = LEFT_OUT[left_out]
    weights, gradients = data(STEPS)
    assert 10 < sum(np.sqrt(sum(np.sum(gradient**2) for gradient in row)) > CLIP for row in gradients) < 90
    model = compiled(name, weights, **options)
    apply(model, gradients[:SAVED_AFTER])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    for one in (model, again):
        apply(one, gradients[SAVED_AFTER:COMPARED_AFTER])
    assert again.optimizer.get_config() == model.optimizer.get_config()
    for one, other in zip(
        again.optimizer.variables + again.weights, model.optimizer.variables + model.weights, strict=True
    ):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(one), keras.ops.convert_to_numpy(other))
    apply(model, gradients[COMPARED_AFTER:])
    assert_close(
        model.get_weights(), expected(name, weights, gradients, undecayed=undecayed, unadapted=undecayed), CLOSE
    )


def test_gradients_as_small_as_epsilon():
    """Where epsilon is added decides half of these steps. It is where PyTorch adds it."""
    weights, gradients = data(20)
    gradients = [[gradient * 1e-8 for gradient in row] for row in gradients]
    model = compiled("adamw", weights)
    apply(model, gradients)
    assert_close(
        model.get_weights(), expected("adamw", weights, gradients, undecayed={1, 2, 3}, unadapted=set()), CLOSE
    )


def test_layer_adaptation_is_left_out_by_name():
    weights, gradients = data(20)
    model = compiled("lamb", weights, exclude_from_layer_adaptation=["first/kernel"])
    apply(model, gradients)
    assert_close(model.get_weights(), expected("lamb", weights, gradients, undecayed={1, 2, 3}, unadapted={0}), CLOSE)


def test_lamb_without_decay_and_exclusions_is_that_of_keras():
    weights, gradients = data(20)
    model, other = compiled("lamb", weights), small_model()
    model.compile(lamb(0.01, weight_decay=0.0, clip_norm=CLIP, exclude_from_weight_decay=[]))
    other.compile(keras.optimizers.Lamb(0.01, epsilon=1e-6, global_clipnorm=CLIP))
    other.set_weights(weights)
    for one in (model, other):
        apply(one, gradients)
    assert_close(model.get_weights(), other.get_weights(), CLOSE)


def test_lamb_where_a_norm_is_zero():
    weights, gradients = data(3)
    weights[0][:], weights[4][:] = 0, 1
    for row in gradients:
        row[4][:] = 0
    model = compiled("lamb", weights, exclude_from_weight_decay=[])
    apply(model, gradients)
    assert_close(model.get_weights(), expected("lamb", weights, gradients, undecayed=set(), unadapted=set()), CLOSE)


@pytest.mark.parametrize("name", KINDS)
def test_accumulated_batches_are_one_step_on_the_mean(name):
    """Also the schedule, the decay and the clipping: NumPy has 4 steps."""
    weights, gradients = data(12)
    model = compiled(name, weights, gradient_accumulation_steps=3)
    apply(model, gradients)
    means = [[np.mean(three, axis=0) for three in zip(*gradients[i : i + 3], strict=True)] for i in range(0, 12, 3)]
    left_out = {1, 2, 3}
    assert_close(model.get_weights(), expected(name, weights, means, undecayed=left_out, unadapted=left_out), CLOSE)
    assert int(model.optimizer.iterations) == 4


@pytest.mark.parametrize("name", KINDS)
def test_fit_accumulates_gradients_of_repeated_tokens(name):
    """Keras's own embedding, whose gradient on TensorFlow lists a token as often as it occurs."""
    ids, values = (
        np.array([[1, 1, 3], [2, 1, 1], [3, 3, 3], [4, 1, 0]]),
        np.random.default_rng(1).normal(size=(4, 3, 2)),
    )
    found = []
    for batch_size, num_batches in ((4, 1), (1, 4)):
        model = keras.Sequential([keras.Input((3,)), keras.layers.Embedding(6, 2)])
        model.set_weights([np.arange(12.0).reshape(6, 2) / 12 - 0.3])
        optimizer = KINDS[name][0](0.01, clip_norm=0.1, gradient_accumulation_steps=num_batches)
        model.compile(optimizer, "mse", run_eagerly=num_batches == 1)
        model.fit(ids, values, batch_size=batch_size, epochs=3, shuffle=False, verbose=0)
        found.append(model.get_weights())
    assert_close(found[1], found[0], CLOSE)


def test_refusals():
    with pytest.raises(ValueError, match="`gradient_accumulation_steps` must be at least 1. Received.*=0"):
        adamw(gradient_accumulation_steps=0)
    with pytest.raises(TypeError, match="`exclude_from_weight_decay` must be a list of regular expr.*='bias'"):
        google_adamw(exclude_from_weight_decay="bias")
    with pytest.raises(ValueError, match=r"`exclude_from_layer_adaptation` must be a list of regular.*\['\('\]"):
        lamb(exclude_from_layer_adaptation=["("])
    with pytest.raises(ValueError, match="`GoogleAdamW`: `amsgrad` must be False"):
        type(google_adamw())(amsgrad=True)
