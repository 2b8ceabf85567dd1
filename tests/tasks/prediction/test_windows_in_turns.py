"""Windows and other rows that go through a model some at a time."""

import keras
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
    monkeypatch.setattr(module, "default_max_tokens", lambda: 15)
    shapes = []

    def sums(part):
        shapes.append(tuple(part["token_ids"].shape))
        np.testing.assert_array_equal(part["token_ids"] > 0, part["padding_mask"] > 0)
        return tf.reduce_sum(part["token_ids"], axis=1), part["token_ids"][:, :1]

    total, first = module.in_parts(sums, windows, width=tf.reduce_max, sizes=((tf.int32, ()), (tf.int32, (1,))))
    assert shapes == [(3, 5), (4, 3)], "longest first, at most 15 tokens, no wider than a part needs"
    assert total.numpy().tolist() == [length * (7 + row) for row, length in enumerate(LENGTHS)]
    assert first.numpy().tolist() == [[7 + row] for row in range(7)]


def test_no_windows():
    windows = {name: tf.zeros((0, 4), tf.int32) for name in ("token_ids", "padding_mask")}
    (found,) = module.in_parts(
        lambda part: (part["token_ids"],), windows, width=lambda lengths: 4, sizes=((tf.int32, (None,)),)
    )
    assert found.shape == (0, 4)


def test_rows_of_a_model_keep_their_width_and_their_other_inputs(windows, monkeypatch):
    monkeypatch.setattr(module, "default_max_tokens", lambda: 10)
    rows = {**windows, "places": tf.reshape(tf.range(14), (7, 2))}
    shapes = []

    def run(part):
        shapes.append(tuple(part["token_ids"].shape))
        return {"ids": part["token_ids"], "sum": tf.reduce_sum(part["places"], axis=1)}

    outputs = {"ids": keras.KerasTensor((None, None), "int32"), "sum": keras.KerasTensor((None,), "int32")}
    found = module.outputs_in_parts(run, rows, outputs)
    assert shapes == [(2, 6), (2, 6), (3, 6)]
    np.testing.assert_array_equal(found["ids"], windows["token_ids"])
    assert found["sum"].numpy().tolist() == [4 * row + 1 for row in range(7)]


def test_a_row_of_choices_counts_all_of_its_tokens(windows, monkeypatch):
    monkeypatch.setattr(module, "default_max_tokens", lambda: 12)
    choices = {name: tf.stack([tensor, tensor], axis=1) for name, tensor in windows.items()}
    sizes = []

    def run(part):
        sizes.append(len(part["token_ids"]))
        return part["token_ids"][:, 0, 0]

    found = module.outputs_in_parts(run, choices, keras.KerasTensor((None,), "int32"))
    assert sizes == [1, 1, 1, 2, 2]
    assert found.numpy().tolist() == list(range(7, 14))


def test_padding_between_tokens_is_part_of_a_row(windows):
    mask = windows["padding_mask"].numpy()
    mask[0] = [1, 0, 0, 0, 0, 1]
    (found,) = module.in_parts(
        lambda part: (tf.reduce_sum(part["padding_mask"], axis=1),),
        {**windows, "padding_mask": tf.constant(mask)},
        width=tf.reduce_max,
        sizes=((tf.int32, ()),),
    )
    assert found.numpy().tolist() == mask.sum(1).tolist()
