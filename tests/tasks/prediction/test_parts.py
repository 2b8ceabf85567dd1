"""Windows that go through a model in parts, and words that are tagged by all their pieces."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.preprocessing.preprocessors.word_aligner import AlignedWords
from keras_bert_layers.tasks.prediction import parts

LENGTHS = [2, 5, 1, 4, 3, 5, 2]


@pytest.fixture
def windows():
    mask = (np.arange(6) < np.array(LENGTHS)[:, None]).astype("int32")
    tokens = mask * np.arange(7, 14, dtype="int32")[:, None]
    return {"token_ids": tf.constant(tokens), "padding_mask": tf.constant(mask)}


def test_parts_of_similar_length_come_back_in_the_order_of_the_windows(windows, monkeypatch):
    monkeypatch.setattr(parts, "WINDOWS_PER_PART", 3)
    shapes = []

    def sums(part):
        shapes.append(tuple(part["token_ids"].shape))
        np.testing.assert_array_equal(part["token_ids"] > 0, part["padding_mask"] > 0)
        return tf.reduce_sum(part["token_ids"], axis=1), part["token_ids"][:, :1]

    total, first = parts.in_parts(sums, windows, width=tf.reduce_max, sizes=((tf.int32, ()), (tf.int32, (1,))))
    assert shapes == [(3, 5), (3, 3), (1, 1)], "longest first, no wider than a part needs"
    assert total.numpy().tolist() == [length * (7 + row) for row, length in enumerate(LENGTHS)]
    assert first.numpy().tolist() == [[7 + row] for row in range(7)]


def test_no_windows():
    windows = {name: tf.zeros((0, 4), tf.int32) for name in ("token_ids", "padding_mask")}
    (found,) = parts.in_parts(
        lambda part: (part["token_ids"],), windows, width=lambda lengths: 4, sizes=((tf.int32, (None,)),)
    )
    assert found.shape == (0, 4)


@pytest.mark.parametrize("aggregation", ["average", "max"])
def test_tags_of_pieces(aggregation):
    """The second row has one word of two pieces, the first row a word of three and one of one."""
    logits = tf.constant(np.random.default_rng(4).normal(0, 3, (2, 6, 3)), tf.float32)
    pieces = AlignedWords(
        inputs={},
        places=tf.constant([[1, 2, 3, 4], [7, 8, -1, -1]]),
        word_ids=tf.constant([[0, 0, 0, 1], [0, 0, -1, -1]]),
        starts=tf.constant([[0, 2, 4, 9], [3, 5, -1, -1]]),
        ends=tf.constant([[2, 4, 8, 12], [5, 6, -1, -1]]),
        first_windows=tf.constant([0, 1]),
    )
    found = parts.tags_of_pieces(logits, pieces, aggregation=aggregation)
    shares = tf.nn.softmax(tf.reshape(logits, (12, 3))).numpy()
    expected = []
    for places in ([1, 2, 3], [4], [7, 8]):
        rows = shares[places]
        row = rows.mean(axis=0) if aggregation == "average" else rows[rows.max(axis=1).argmax()]
        expected.append((row.argmax(), row.max()))
    tags, scores = zip(*expected, strict=True)
    assert found.tags.numpy().tolist() == [[tags[0], tags[1]], [tags[2], 0]]
    np.testing.assert_allclose(found.scores, [[scores[0], scores[1]], [scores[2], -1]], rtol=1e-6)
    assert found.starts.numpy().tolist() == [[0, 9], [3, -1]]
    assert found.ends.numpy().tolist() == [[8, 12], [6, -1]]
