"""Rows in groups of about one length: nothing lost, and the fewest scores."""

import keras
import numpy as np
import pytest

from keras_bert_layers.layers.padding_free import packing_of

pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="padding is left out on TensorFlow")

MASK = np.array([[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0, 0]], "int32")


def grouped(mask):
    packing = packing_of(keras.ops.convert_to_tensor(np.asarray(mask, "int32")))
    return packing, packing.rows_by_length


def mask_of(lengths, width):
    return (np.arange(width) < np.array(lengths, "int32")[:, None]).astype("int32")


def test_every_row_is_in_one_group_cut_behind_its_longest():
    _, rows = grouped(MASK)
    long, short = rows.groups
    assert np.asarray(long.rows).tolist() == [1]
    assert np.asarray(short.rows).tolist() == [0, 3, 2]
    assert np.asarray(rows.ranks).tolist() == [1, 0, 3, 2]
    np.testing.assert_array_equal(np.asarray(long.padding_mask), MASK[[1], :6])
    np.testing.assert_array_equal(np.asarray(short.padding_mask), MASK[[0, 3, 2], :3])


@pytest.mark.parametrize("mask", [MASK, MASK[:1], MASK[2:3], MASK[:, :1], np.ones((3, 5))])
def test_what_is_unpacked_is_packed_again(mask):
    packing, rows = grouped(mask)
    tokens = np.random.default_rng(2).normal(size=(len(np.asarray(packing.indices)), 3)).astype("float32")
    for found in (rows, packing.all_rows()):
        np.testing.assert_array_equal(np.asarray(found.pack([group.unpack(tokens) for group in found.groups])), tokens)
        values = np.arange(len(mask) * 2).reshape(-1, 2)
        np.testing.assert_array_equal(np.asarray(found.join([group.pick(values) for group in found.groups])), values)


def test_in_the_place_of_padding_stands_a_token_of_the_same_row():
    packing, rows = grouped(MASK)
    row_of_token = np.asarray(packing.rows())
    for group in rows.groups:
        assert (row_of_token[np.asarray(group.sources)] == np.asarray(group.rows)[:, None]).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_other_parting_has_fewer_scores(seed):
    lengths = np.sort(np.random.default_rng(seed).integers(1, 90, 11))[::-1]
    _, rows = grouped(mask_of(lengths, 97))
    scores = sum(group.padding_mask.shape[0] * group.padding_mask.shape[1] ** 2 for group in rows.groups)
    assert scores == min(size * lengths[0] ** 2 + (11 - size) * lengths[size] ** 2 for size in range(11))


def test_rows_of_one_length_stay_together():
    _, rows = grouped(mask_of([4, 4, 4], 9))
    assert [tuple(group.padding_mask.shape) for group in rows.groups] == [(0, 4), (3, 4)]


def test_a_batch_may_be_empty():
    _, rows = grouped(np.ones((0, 4)))
    assert [group.padding_mask.shape[0] for group in rows.groups] == [0, 0]
