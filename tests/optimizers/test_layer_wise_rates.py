"""Learning rates that differ by layer, on the backend that KERAS_BACKEND names."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig
from keras_bert_layers.optimizers import adamw, layer_wise_rates

CONFIG = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=6)
# Of a step: the rounding of a float32 product, and of the difference that shows it.
FLOAT32 = 1e-4


def test_each_weight_moves_by_its_factor():
    backbone = BertBackbone(CONFIG)
    optimizer = adamw(1e-2, weight_decay=0.0, clip_norm=None, rate_factors=layer_wise_rates(backbone, 0.5))
    optimizer = type(optimizer).from_config(optimizer.get_config())
    before = [np.asarray(weight) for weight in backbone.weights]
    optimizer.build(backbone.trainable_variables)
    optimizer.apply([keras.ops.ones(weight.shape) for weight in backbone.weights])
    factors = {"embedding": 0.125, "encoder_block_0": 0.25, "encoder_block_1": 0.5, "pooler": 1.0}
    for weight, value in zip(backbone.weights, before, strict=True):
        step = 1e-2 * factors[weight.path.split("/")[0]]  # Adam's first step has the length of the rate
        np.testing.assert_allclose(value - np.asarray(weight), step, rtol=FLOAT32, atol=1e-7)


def test_the_first_expression_counts():
    layer = keras.layers.Dense(2, name="one")
    layer.build((None, 2))
    optimizer = adamw(1e-2, weight_decay=0.0, rate_factors={"bias": 0.5, "one": 0.25})
    before = [np.asarray(weight) for weight in layer.weights]
    optimizer.build(layer.trainable_variables)
    optimizer.apply([keras.ops.ones(weight.shape) for weight in layer.weights])
    steps = [np.mean(value - np.asarray(weight)) for value, weight in zip(before, layer.weights, strict=True)]
    np.testing.assert_allclose(steps, [0.25e-2, 0.5e-2], rtol=FLOAT32)


class TestErrors:
    def test_factors(self):
        with pytest.raises(ValueError, match="`rate_factors` must be greater than 0"):
            adamw(rate_factors={"bias": 0})
        with pytest.raises(ValueError, match="`rate_factors` must be a list of regular expressions"):
            adamw(rate_factors={"(": 1.0})

    def test_model(self):
        with pytest.raises(TypeError, match="`model` must be a task or a BertBackbone"):
            layer_wise_rates(keras.Sequential())
