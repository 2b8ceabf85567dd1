"""Rows that are selected several times have one gradient, so that every optimizer of Keras is right on embeddings."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.layers import BertEmbedding, MaskedLMHead

IDS = np.array([[3, 1, 1, 4, 1], [3, 3, 2, 1, 3]])
OPTIMIZERS = "SGD RMSprop Adam AdamW Adadelta Adagrad Adamax Adafactor Nadam Ftrl Lion Lamb Muon".split()
STEPS = 3
RATE = 0.01
# One float32 rounding of values near 1, in each of a few steps.
ROUNDING = 1e-6


@pytest.fixture
def embedding():
    keras.utils.set_random_seed(5)
    embedding = BertEmbedding(7, 4, max_sequence_length=5, dropout=0.0, initializer_range=0.5)
    embedding.build((None, None))
    return embedding


def gradient_of_rows(embedding, head=None):
    """The gradients that training sees, for a loss with other slopes everywhere."""
    slopes = tf.constant(np.random.default_rng(0).normal(size=(2, 5, 7 if head else 4)), tf.float32)
    with tf.GradientTape() as tape:
        hidden = embedding(IDS, segment_ids=IDS % 2)
        loss = tf.reduce_sum(slopes * (head(hidden) if head else hidden))
    return tape.gradient(loss, [variable.value for variable in embedding.trainable_variables])


def test_it_is_dense_and_the_sum_over_the_tokens(embedding):
    found = gradient_of_rows(embedding)
    assert not any(isinstance(gradient, tf.IndexedSlices) for gradient in found)
    tokens, segments, _ = found[:3]
    # Each token adds the same vector to both matrices.
    np.testing.assert_allclose(tf.reduce_sum(tokens, 0), tf.reduce_sum(segments, 0), atol=1e-5)
    assert not np.any(tokens[0]), "a token that does not occur"


def test_so_it_is_beside_a_tied_head(embedding):
    head = MaskedLMHead(embedding)
    head.build((None, None, 4))
    assert not any(isinstance(gradient, tf.IndexedSlices) for gradient in gradient_of_rows(embedding, head))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_moves_rows_as_it_moves_a_dense_weight(name, compiled, embedding):
    matrix = embedding.token_embedding
    plain = keras.Variable(matrix.numpy(), name=matrix.name)
    ours, theirs = (getattr(keras.optimizers, name)(RATE) for _ in range(2))
    ours.build([matrix])
    theirs.build([plain])
    slopes = np.random.default_rng(1).normal(size=(2, 5, 4)).astype("float32")
    dense = np.zeros(matrix.shape, "float32")
    np.add.at(dense, IDS, slopes)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(slopes * embedding._sum(tf.constant(IDS), None, 0.0))
        ours.apply([tape.gradient(loss, matrix.value)], [matrix])

    step = tf.function(step) if compiled else step
    for _ in range(STEPS):
        step()
        theirs.apply([tf.constant(dense)], [plain])
    np.testing.assert_allclose(matrix.numpy(), plain.numpy(), atol=ROUNDING)
    assert np.abs(matrix.numpy()[1] - embedding.position_embedding.numpy()[1]).max() > 0
