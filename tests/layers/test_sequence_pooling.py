import re

import keras
import numpy as np
import pytest

from keras_bert_layers.layers import SequencePooling

# A float32 mean of five numbers.
FLOAT32 = 1e-6
MODES = ["cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
SEVERAL = ("lasttoken", "mean", "cls")
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]], "int32")


@pytest.mark.parametrize("mode", [*MODES, SEVERAL], ids=str)
def test_contract(mode, check_layer, draw, tmp_path):
    check_layer(
        lambda **kwargs: SequencePooling(mode, **kwargs),
        {"hidden": draw(3, 5, 7), "padding_mask": MASK},
        output_shape=(3, 21 if mode == SEVERAL else 7),
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
    sums = [hidden[0].sum(axis=0) / 5**0.5, hidden[1, :3].sum(axis=0) / 3**0.5, zeros]
    np.testing.assert_allclose(
        np.asarray(SequencePooling("mean_sqrt_len_tokens")(hidden, mask)), sums, atol=4 * FLOAT32
    )
    weighted = [[1, 2, 3, 4, 5] @ hidden[0] / 15, [1, 2, 3] @ hidden[1, :3] / 6, zeros]
    np.testing.assert_allclose(np.asarray(SequencePooling("weightedmean")(hidden, mask)), weighted, atol=4 * FLOAT32)
    last = np.stack([hidden[0, 4], hidden[1, 2], zeros])
    np.testing.assert_array_equal(np.asarray(SequencePooling("lasttoken")(hidden, mask)), np.float32(last))


def test_several_modes_side_by_side(draw):
    hidden = draw(3, 5, 7)
    parts = [np.asarray(SequencePooling(mode)(hidden, MASK)) for mode in SEVERAL]
    np.testing.assert_array_equal(np.asarray(SequencePooling(list(SEVERAL))(hidden, MASK)), np.concatenate(parts, -1))


@pytest.mark.parametrize("mode", MODES)
def test_no_mask_means_all_real(mode, draw):
    layer = SequencePooling(mode)
    hidden = draw(3, 5, 7)
    np.testing.assert_array_equal(np.asarray(layer(hidden)), np.asarray(layer(hidden, np.ones((3, 5), "int32"))))


@pytest.mark.parametrize("content", [1e6, np.inf, np.nan])
@pytest.mark.parametrize("mode", MODES)
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


@pytest.mark.parametrize("mode", ["sum", (), ["mean", "sum"], 3])
def test_errors(mode):
    text = f"`SequencePooling`: `mode` must be one of {MODES}, or a sequence of them. Received: mode={mode!r}"
    with pytest.raises(ValueError, match=re.escape(text)):
        SequencePooling(mode)
