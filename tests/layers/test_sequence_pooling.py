import re

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import SequencePooling

# A float32 mean of five numbers.
FLOAT32 = 1e-6
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]], "int32")


@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
def test_contract(mode, check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: SequencePooling(mode, **kwargs),
        {"hidden": draw(3, 5, 7), "padding_mask": MASK},
        output_shape=(3, 7),
        num_weights=0,
        tmp_path=tmp_path,
    )


@pytest.mark.parametrize("mask", [MASK, MASK.astype(bool)], ids=["int", "bool"])
def test_values(mask, draw):
    hidden = draw(3, 5, 7) - 3  # all negative: padding must not win as a zero
    np.testing.assert_array_equal(np.asarray(SequencePooling("cls")(hidden, mask)), hidden[:, 0])
    zeros = np.zeros(7)
    means = [hidden[0].mean(axis=0), hidden[1, :3].mean(axis=0), zeros]
    np.testing.assert_allclose(np.asarray(SequencePooling("mean")(hidden, mask)), means, atol=FLOAT32)
    maxima = [hidden[0].max(axis=0), hidden[1, :3].max(axis=0), zeros]
    np.testing.assert_array_equal(np.asarray(SequencePooling("max")(hidden, mask)), np.float32(maxima))


@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
def test_no_mask_means_all_real(mode, draw):
    layer = SequencePooling(mode)
    hidden = draw(3, 5, 7)
    np.testing.assert_array_equal(np.asarray(layer(hidden)), np.asarray(layer(hidden, np.ones((3, 5), "int32"))))


@pytest.mark.parametrize("content", [1e6, np.inf, np.nan])
@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
def test_padding_content_changes_nothing(mode, content, draw):
    layer = SequencePooling(mode)
    hidden = draw(2, 5, 7)
    before = np.asarray(layer(hidden, MASK[:2]))
    hidden[1, 3:] = content
    np.testing.assert_array_equal(np.asarray(layer(hidden, MASK[:2])), before)


def test_the_mean_of_many_float16_numbers_does_not_overflow():
    hidden = np.full((1, 999, 3), 1000, "float16")
    pooled = SequencePooling("mean", dtype="float16")(hidden)
    np.testing.assert_array_equal(np.asarray(keras.ops.cast(pooled, "float32")), np.full((1, 3), 1000))


def test_errors():
    text = "`SequencePooling`: `mode` must be one of ['cls', 'mean', 'max']. Received: mode='sum'"
    with pytest.raises(ValueError, match=re.escape(text)):
        SequencePooling("sum")
