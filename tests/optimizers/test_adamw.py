import keras
import numpy as np
import pytest

from keras_bert_layers.optimizers import adamw
from keras_bert_layers.optimizers.adamw import BertAdamW

# Of a weight: TensorFlow's operation makes a step 7e-6 times too long, see below, and a step is a fourth of a weight.
FIRST_STEP = 3e-6
# TensorFlow's operation takes 1 - 0.999 in float32, which is 1.3e-5 off; Keras rounds it, but not 1 - 0.999^t, to the
# nearest float32 of 0.001. So second moments differ by that share, and steps by half of it.
SECOND_MOMENT = 1.5e-5
# Keras multiplies a weight by the decay and then by the rate, and not by their product: the last bit of a float32.
ROUNDING = 1e-6
# The difference of two weights that are twenty times as large, in float32.
DIFFERENCE = 1e-5


def test_first_step_against_numpy():
    layer = keras.layers.Dense(1, name="dense")
    layer.build((None, 2))
    layer.set_weights([np.array([[2.0], [-4.0]]), np.array([3.0])])
    optimizer = adamw(0.5, weight_decay=0.1, clip_norm=1e9)
    optimizer.apply([keras.ops.array([[7.0], [-0.5]]), keras.ops.array([2.0])], layer.trainable_variables)
    # After one step the corrected moments are the gradient and its square, so each weight moves by the rate.
    np.testing.assert_allclose(layer.kernel, [[2.0 * 0.95 - 0.5], [-4.0 * 0.95 + 0.5]], rtol=FIRST_STEP)
    np.testing.assert_allclose(layer.bias, [2.5], rtol=FIRST_STEP)


def test_excludes_norms_and_biases(backbone):
    optimizer = adamw()
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert again.get_config() == optimizer.get_config()
    for one in (optimizer, again):
        one.build(backbone.trainable_variables)
        undecayed = {weight.name for weight in backbone.trainable_variables if not one._use_weight_decay(weight)}
        assert undecayed == {"bias", "gamma", "beta"}


@pytest.mark.parametrize("clip_norm", [0.7, None])
def test_steps_are_those_of_keras(clip_norm):
    rng = np.random.default_rng(3)
    weights = [rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=(7, 3))]
    ours, theirs = (
        [keras.Variable(value, name=name) for value, name in zip(weights, "kbt", strict=True)] for _ in "ab"
    )
    # Without an epsilon: Keras adds it before the bias correction, this optimizer after it.
    settings = {"weight_decay": 0.3, "epsilon": 0.0, "global_clipnorm": clip_norm}
    schedule = keras.optimizers.schedules.PolynomialDecay(0.1, 15)
    pairs = [(BertAdamW(schedule, **settings), ours), (keras.optimizers.AdamW(schedule, **settings), theirs)]
    for step in range(10):
        gradients = [rng.normal(size=value.shape).astype("float32") * 10.0**-step for value in weights]
        for optimizer, variables in pairs:
            optimizer.apply([keras.ops.array(gradient) for gradient in gradients], variables)
    *our_moments, _norm = pairs[0][0].variables
    for our, their in zip(our_moments + ours, pairs[1][0].variables + theirs, strict=True):
        np.testing.assert_allclose(np.asarray(our), np.asarray(their), rtol=SECOND_MOMENT, atol=SECOND_MOMENT)


def test_gradients_of_a_few_rows():
    """What looks rows up gives gradients of those rows alone, perhaps of one row twice."""
    embedding = keras.layers.Embedding(5, 2)
    model = keras.Sequential([embedding])
    model.compile(BertAdamW(0.1, weight_decay=0.0, global_clipnorm=1.0), "mse")
    model.fit(np.array([[1, 1, 3]]), np.ones((1, 3, 2)), verbose=0)
    before = np.asarray(embedding.embeddings)
    model.fit(np.array([[2, 2, 2]]), np.ones((1, 3, 2)), verbose=0)
    moved = (np.asarray(embedding.embeddings) != before).any(axis=1)
    assert moved.tolist() == [False, True, True, True, False]  # the moments keep moving it


def test_what_has_no_operation_is_computed_by_keras():
    values = []
    for kind in (BertAdamW, keras.optimizers.AdamW):
        variable = keras.Variable(np.array([2.0, -1.0]), name="kernel")
        kind(0.1, amsgrad=True).apply([keras.ops.array([1.0, 3.0])], [variable])
        values.append(np.asarray(variable))
    np.testing.assert_allclose(*values, rtol=ROUNDING)


def test_restarted_weights_begin_with_the_first_step():
    old, new = (keras.Variable(np.full(3, value, "float32"), name="kernel") for value in (1.0, 2.0))
    optimizer = adamw(0.1, weight_decay=0.0, clip_norm=None)
    optimizer.build([old, new])
    gradient = keras.ops.convert_to_tensor(np.array([0.5, -2.0, 3.0], "float32"))
    for _ in range(30):
        optimizer.apply([gradient, 7 * gradient], [old, new])
    optimizer.restart([new])
    before = np.asarray(old), np.asarray(new)
    optimizer.apply([-gradient, -gradient], [old, new])
    np.testing.assert_allclose(np.asarray(new) - before[1], 0.1 * np.sign(gradient), rtol=DIFFERENCE)
    assert np.all(np.asarray(old - before[0]) * np.sign(gradient) < 0)  # its moments remember the other direction
