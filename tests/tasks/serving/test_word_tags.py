"""Words that are tagged by all their pieces."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.preprocessing.preprocessors.word_aligner import AlignedWords
from keras_bert_layers.tasks.serving.word_tags import tags_of_pieces


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
    found = tags_of_pieces(logits, pieces, aggregation=aggregation)
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
