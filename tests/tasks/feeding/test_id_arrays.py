import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.feeding.id_arrays import IdArrays, is_id_arrays

IDS = {"token_ids": np.arange(14).reshape(7, 2), "padding_mask": np.ones((7, 2), int)}
Y, WEIGHTS = np.arange(7), np.arange(7.0)


@pytest.fixture
def arrays():
    return IdArrays("BertClassifier")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((IDS, Y, None), True),
        ((IDS, Y, WEIGHTS), True),
        ((IDS, tf.constant(Y), None), True),
        ((IDS, Y[:6], None), False),
        ((IDS, Y.tolist(), None), False),
        ((tf.data.Dataset.from_tensors((IDS, Y)), None, None), False),
        ((iter([]), None, None), False),
    ],
    ids=["arrays", "weights", "tensors", "other lengths", "lists", "a dataset", "a generator"],
)
def test_what_is_shuffled_here(rows, expected):
    assert is_id_arrays(rows) is expected


def test_rows_stay_together(arrays, make_epochs):
    seen = []
    for ids, y, weights in arrays(IDS, Y, WEIGHTS, batch_size=3, epochs=make_epochs()):
        assert weights.dtype == tf.float32  # as Keras casts them
        np.testing.assert_array_equal(ids["token_ids"][:, 0], 2 * y)
        np.testing.assert_array_equal(weights, y)
        seen += y.numpy().tolist()
    assert sorted(seen) == list(range(7)) != seen


def test_split(arrays):
    first, last = arrays.split(IDS, Y, None, 0.3)  # 4.9 rows, and what is left
    assert [len(part[1]) for part in (first, last)] == [4, 3]
    np.testing.assert_array_equal(last[0]["token_ids"], IDS["token_ids"][4:])
    assert first[2] is last[2] is None


def test_validation(arrays):
    (batch,) = arrays.validation((IDS, Y), 7)
    np.testing.assert_array_equal(batch[1], Y)
    dataset = tf.data.Dataset.from_tensors((IDS, Y))
    assert arrays.validation(dataset, 7) is dataset
