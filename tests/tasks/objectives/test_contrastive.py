import numpy as np
import tensorflow as tf

from keras_bert_layers.losses.in_batch import ABSENT
from keras_bert_layers.tasks.objectives import contrastive

# Anchors, partners, and two negatives per row; "x" belongs to "a" and to "b", and "a" has two partners.
TABLE = np.array(
    [["a", "x", "u", "v"], ["b", "x", "y", ""], ["a", "z", "x", "w"], ["c", "y", "", ""], ["d", "a", "c", "d"]], object
)


def numbers(table):
    return contrastive.text_ids(tf.constant(table))


def test_text_ids():
    found = np.asarray(numbers(TABLE))
    assert found.dtype == np.int32
    for first in np.ndindex(TABLE.shape):
        for second in np.ndindex(TABLE.shape):
            if TABLE[first] and TABLE[second]:
                assert (found[first] == found[second]) == (TABLE[first] == TABLE[second])
    assert (found == ABSENT).tolist() == (TABLE == "").tolist()


def test_empty_texts_are_texts_but_for_negatives():
    found = np.asarray(numbers(np.array([["", "", ""], ["a", "", "b"]], object)))
    assert found[0, 0] == found[0, 1] == found[1, 1] >= 0
    assert found[0, 2] == ABSENT


def test_text_ids_in_graph():
    graph = tf.function(contrastive.text_ids, input_signature=[tf.TensorSpec((None, 4), tf.string)])
    assert graph.get_concrete_function().structured_outputs.shape.as_list() == [None, 4]
    np.testing.assert_array_equal(graph(tf.constant(TABLE)), numbers(TABLE))


def test_columns():
    table = contrastive.joined((tf.constant(["a", "b"]), ["c", "d"], tf.constant([["e", "f"], ["g", "h"]])))
    assert table.numpy().tolist() == [[b"a", b"c", b"e", b"f"], [b"b", b"d", b"g", b"h"]]
    assert contrastive.column_by_column(table[:, 1:]).numpy().tolist() == [b"c", b"d", b"e", b"g", b"f", b"h"]
