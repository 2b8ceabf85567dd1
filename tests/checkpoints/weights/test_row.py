import numpy as np
import pytest

from keras_bert_layers.checkpoints.weights.table import Layout, StoredWeight, Transform, WeightRow

NUM_HEADS = 3


def test_parts_put_together_are_the_whole():
    whole = np.arange(4 * 15).reshape(4, 15)
    rows = [WeightRow("kernel", qkv_index=third) for third in range(3)]
    np.testing.assert_array_equal(np.concatenate([row.part(whole) for row in rows], axis=-1), whole)
    assert {row.part(whole).shape for row in rows} == {rows[0].part_shape((4, 15))} == {(4, 5)}


@pytest.mark.parametrize(
    ("transform", "shape", "stored_shape"),
    [
        (Transform.COPY, (4, 6), (4, 6)),
        (Transform.TRANSPOSE, (4, 6), (6, 4)),
        (Transform.TRANSPOSE, (4,), (4,)),
        (Transform.SPLIT_LAST, (4, 6), (4, 3, 2)),
        (Transform.SPLIT_LAST, (6,), (3, 2)),
        (Transform.SPLIT_FIRST, (6, 4), (3, 2, 4)),
    ],
)
def test_transforms_there_and_back(transform, shape, stored_shape):
    array = np.arange(np.prod(shape)).reshape(shape)
    stored = transform.to_stored(array, NUM_HEADS)
    assert stored.shape == transform.stored_shape(shape, NUM_HEADS) == stored_shape
    np.testing.assert_array_equal(transform.to_ours(stored, shape), array)


def test_a_head_is_a_run_of_neighbours():
    """Head 1 of a kernel is the columns from D to 2 D, as every implementation splits its product."""
    kernel = np.arange(4 * 6).reshape(4, 6)
    np.testing.assert_array_equal(Transform.SPLIT_LAST.to_stored(kernel, NUM_HEADS)[:, 1], kernel[:, 2:4])
    np.testing.assert_array_equal(Transform.SPLIT_FIRST.to_stored(kernel.T, NUM_HEADS)[1], kernel.T[2:4])


def test_a_layout_without_the_weight():
    row = WeightRow("bias", google=StoredWeight("bias"), kerashub=StoredWeight("b"), qkv_index=2)
    assert [row.stored(layout) is None for layout in Layout] == [False, True, False]
