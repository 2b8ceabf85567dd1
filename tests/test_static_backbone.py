"""`StaticBackbone`: means of token vectors, in graph and out of it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.tasks import StaticBackbone

# Sums of at most seven float32 vectors, in another order.
TOLERANCE = 1e-6
IDS = np.array([[2, 4, 4, 3, 0, 0, 0], [2, 5, 6, 7, 8, 9, 3], [0, 0, 0, 0, 0, 0, 0]], "int32")
MASK = (np.arange(7) < np.array([[4], [7], [0]])).astype("int32")
INPUTS = {"token_ids": IDS, "segment_ids": 0 * IDS, "padding_mask": MASK}


@pytest.fixture(scope="module")
def backbone():
    return StaticBackbone(vocabulary_size=11, hidden_dim=5)


def means(table):
    """The mean of each row's vectors; zeros for a row without tokens."""
    rows = zip(IDS, MASK, strict=True)
    return np.array([table[row[mask > 0]].sum(0) / max(mask.sum(), 1) for row, mask in rows])


@pytest.mark.parametrize("padding_free", [True, False])
@pytest.mark.parametrize("in_graph", [True, False])
def test_means(backbone, padding_free, in_graph):
    backbone.get_layer("embedding").padding_free = padding_free
    call = tf.function(backbone, autograph=False) if in_graph else backbone
    found = call({name: tf.constant(value) for name, value in INPUTS.items()})["pooled_output"]
    np.testing.assert_allclose(found, means(np.asarray(backbone.weights[0])), atol=TOLERANCE)


@pytest.mark.parametrize("padding_free", [True, False])
def test_gradient_is_one_row_for_each_token(backbone, padding_free):
    backbone.get_layer("embedding").padding_free = padding_free
    table = backbone.weights[0].value
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(backbone(INPUTS)["pooled_output"])
    gradient = tape.gradient(loss, table)
    assert isinstance(gradient, tf.Tensor), "no slices, of which a token may have several"
    expected = np.zeros((11, 5))
    for row, mask in zip(IDS, MASK, strict=True):
        np.add.at(expected, row[mask > 0], 1 / max(mask.sum(), 1))
    np.testing.assert_allclose(gradient, expected, atol=TOLERANCE)


def test_config(backbone):
    again = StaticBackbone.from_config(backbone.get_config())
    assert again.get_config() == backbone.get_config()
    assert again.config == backbone.config
    clone = keras.models.clone_model(backbone)
    assert type(clone) is StaticBackbone


@pytest.mark.parametrize("dtype", ["bfloat16", "mixed_bfloat16"])
def test_dtype(dtype):
    backbone = StaticBackbone(11, 5, dtype=dtype)
    found = backbone(INPUTS)["pooled_output"]
    assert found.dtype == "bfloat16"
    assert backbone.weights[0].dtype == ("bfloat16" if dtype == "bfloat16" else "float32")


def test_errors():
    with pytest.raises(ValueError, match="`StaticBackbone`: `hidden_dim` must be at least 1"):
        StaticBackbone(9, 0)
    with pytest.raises(TypeError, match="`vocabulary_size` must be an integer"):
        StaticBackbone("9", 4)
