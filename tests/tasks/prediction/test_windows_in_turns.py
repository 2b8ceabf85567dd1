"""Windows that go through a model some at a time."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.tasks.prediction import windows as module

LENGTHS = [2, 5, 1, 4, 3, 5, 2]


@pytest.fixture
def windows():
    mask = (np.arange(6) < np.array(LENGTHS)[:, None]).astype("int32")
    tokens = mask * np.arange(7, 14, dtype="int32")[:, None]
    return {"token_ids": tf.constant(tokens), "padding_mask": tf.constant(mask)}


def test_parts_of_similar_length_come_back_in_the_order_of_the_windows(windows, monkeypatch):
    monkeypatch.setattr(module, "WINDOWS_PER_PART", 3)
    shapes = []

    def sums(part):
        shapes.append(tuple(part["token_ids"].shape))
        np.testing.assert_array_equal(part["token_ids"] > 0, part["padding_mask"] > 0)
        return tf.reduce_sum(part["token_ids"], axis=1), part["token_ids"][:, :1]

    total, first = module.in_parts(sums, windows, width=tf.reduce_max, sizes=((tf.int32, ()), (tf.int32, (1,))))
    assert shapes == [(3, 5), (3, 3), (1, 1)], "longest first, no wider than a part needs"
    assert total.numpy().tolist() == [length * (7 + row) for row, length in enumerate(LENGTHS)]
    assert first.numpy().tolist() == [[7 + row] for row in range(7)]


def test_no_windows():
    windows = {name: tf.zeros((0, 4), tf.int32) for name in ("token_ids", "padding_mask")}
    (found,) = module.in_parts(
        lambda part: (part["token_ids"],), windows, width=lambda lengths: 4, sizes=((tf.int32, (None,)),)
    )
    assert found.shape == (0, 4)
