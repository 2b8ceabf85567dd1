import keras
import numpy as np

from keras_bert_layers.optimizers import adamw

# Keras adds epsilon, 1e-6, to the uncorrected root of the second moment, here 0.03 times a gradient of 0.5 or more.
EPSILON_SHARE = 1e-4


def test_first_step_against_numpy():
    layer = keras.layers.Dense(1, name="dense")
    layer.build((None, 2))
    layer.set_weights([np.array([[2.0], [-4.0]]), np.array([3.0])])
    optimizer = adamw(0.5, weight_decay=0.1, clip_norm=1e9)
    optimizer.apply([keras.ops.array([[7.0], [-0.5]]), keras.ops.array([2.0])], layer.trainable_variables)
    # After one step the corrected moments are the gradient and its square, so each weight moves by the rate.
    np.testing.assert_allclose(layer.kernel, [[2.0 * 0.95 - 0.5], [-4.0 * 0.95 + 0.5]], rtol=EPSILON_SHARE)
    np.testing.assert_allclose(layer.bias, [2.5], rtol=EPSILON_SHARE)


def test_excludes_norms_and_biases(backbone):
    optimizer = adamw()
    optimizer.build(backbone.trainable_variables)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert again.get_config() == optimizer.get_config()
    for one in (optimizer, again):
        undecayed = {weight.name for weight in backbone.trainable_variables if not one._use_weight_decay(weight)}
        assert undecayed == {"bias", "gamma", "beta"}
