"""`LayerNorm` beside the definition in float64, step by step and as one operation."""

import platform

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import layer_norm
from keras_bert_layers.layers.layer_norm import LayerNorm

on_tensorflow = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="one operation on TensorFlow only")
EPSILON = 1e-6
# Float32 sums of eleven numbers; the row far from 0 loses three digits of its deviations.
FLOAT32 = {"plain": 2e-6, "far from 0": 2e-3, "constant": 2e-6}
# bfloat16 keeps 8 bits of inputs, weights and outputs, which are below 8.
BFLOAT16 = 0.06
ROWS = np.random.default_rng(2).normal(size=(7, 11)).astype("float32")
INPUTS = {"plain": ROWS, "far from 0": 100 + 0.1 * ROWS, "constant": np.full((3, 11), 5, "float32")}


def make(dtype="float32", **options):
    layer = LayerNorm(epsilon=EPSILON, dtype=dtype, **options)
    layer.build((None, 11))
    generator = np.random.default_rng(3)
    weights = [1 + 0.3 * generator.normal(size=11), generator.normal(size=11)]
    layer.set_weights(weights[: len(layer.weights)])
    return layer


def expected(layer, rows):
    rows = rows.astype("float64")
    centred = rows - rows.mean(axis=-1, keepdims=True)
    gamma, *betas = (np.asarray(weight, "float64") for weight in layer.get_weights())
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON) * gamma + sum(betas)


def graph(layer, **options):
    import tensorflow as tf

    specs = [tf.TensorSpec([None, 11], layer.compute_dtype)]
    return tf.function(lambda rows: layer(rows, **options), input_signature=specs)


@pytest.mark.parametrize("name", INPUTS)
def test_step_by_step(name):
    layer = make()
    np.testing.assert_allclose(layer(INPUTS[name]), expected(layer, INPUTS[name]), atol=FLOAT32[name])
    three_axes = np.asarray(layer(INPUTS[name][:, None]))
    np.testing.assert_allclose(three_axes[:, 0], expected(layer, INPUTS[name]), atol=FLOAT32[name])


@pytest.fixture(params=[0, layer_norm._SMALL], ids=["as one operation", "few rows, step by step"])
def smallest(request, monkeypatch):
    """How many numbers are normalized as one operation."""
    monkeypatch.setattr(layer_norm, "_SMALL", request.param)


@on_tensorflow
@pytest.mark.usefixtures("smallest")
@pytest.mark.parametrize("name", INPUTS)
def test_in_a_graph(name):
    layer = make()
    np.testing.assert_allclose(graph(layer)(INPUTS[name]), expected(layer, INPUTS[name]), atol=FLOAT32[name])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_without_a_beta(dtype):
    layer = make(dtype, center=False)
    assert [weight.name for weight in layer.weights] == ["gamma"]
    assert LayerNorm.from_config(layer.get_config()).center is False
    found = layer(keras.ops.cast(ROWS, dtype))
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    tolerance = BFLOAT16 if dtype == "bfloat16" else FLOAT32["plain"]
    np.testing.assert_allclose(keras.ops.cast(found, "float32"), expected(layer, ROWS), atol=tolerance)


@on_tensorflow
@pytest.mark.usefixtures("smallest")
@pytest.mark.parametrize("training", [False, True])
def test_without_a_beta_in_a_graph(training):
    layer = make(center=False)
    found = graph(layer, training=training)(ROWS)
    np.testing.assert_allclose(found, expected(layer, ROWS), atol=FLOAT32["plain"])


@on_tensorflow
def test_training_has_no_choice():
    layer = make()
    found = graph(layer, training=True).get_concrete_function().graph.get_operations()
    assert ("FusedBatchNormV3" in {node.type for node in found}) == (platform.machine() in ("x86_64", "AMD64"))
    assert not any("If" in node.type for node in found)


@on_tensorflow
@pytest.mark.usefixtures("smallest")
def test_no_rows():
    assert graph(make())(np.zeros((0, 11), "float32")).shape == (0, 11)


@on_tensorflow
@pytest.mark.usefixtures("smallest")
@pytest.mark.parametrize("policy", ["bfloat16", "mixed_bfloat16"])
def test_bfloat16(policy):
    import tensorflow as tf

    layer = make(policy)
    found = graph(layer)(tf.cast(ROWS, "bfloat16"))
    assert found.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(found, "float32"), expected(layer, ROWS), atol=BFLOAT16)


@on_tensorflow
@pytest.mark.usefixtures("smallest")
@pytest.mark.parametrize("center", [True, False])
def test_gradients(center):
    import tensorflow as tf

    layer, weights = (
        make(center=center),
        tf.constant(np.random.default_rng(4).normal(size=ROWS.shape).astype("float32")),
    )

    def gradients(rows):
        with tf.GradientTape() as tape:
            tape.watch(rows)
            loss = tf.reduce_sum(layer(rows) * weights)
        return tape.gradient(loss, [rows, *[variable.value for variable in layer.trainable_variables]])

    by_steps, at_once = gradients(tf.constant(ROWS)), tf.function(gradients)(tf.constant(ROWS))
    for ours, theirs in zip(at_once, by_steps, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)  # sums over seven rows of float32


def test_the_last_norm_of_a_part_of_a_backbone_loads(tmp_path):
    from keras_bert_layers import BertBackbone, BertConfig
    from keras_bert_layers.layers import EncoderParts

    sizes = {"hidden_dim": 6, "num_layers": 1, "num_heads": 2, "intermediate_dim": 5, "max_sequence_length": 4}
    config = BertConfig(vocabulary_size=7, **sizes)
    backbone = BertBackbone(config, parts=EncoderParts(normalize_first=True))
    part = keras.Model(backbone.inputs, backbone.get_layer("final_layer_norm").output)
    part.save(tmp_path / "part.keras")
    again = keras.models.load_model(tmp_path / "part.keras")
    ids = {
        "token_ids": np.array([[1, 2, 3]]),
        "segment_ids": np.zeros((1, 3), int),
        "padding_mask": np.ones((1, 3), int),
    }
    np.testing.assert_array_equal(again(ids), part(ids))
