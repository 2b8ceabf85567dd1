"""Embedding rows that are selected several times get one summed gradient; see optimizers/test_on_embeddings.py."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.layers import BertEmbedding, MaskedLMHead

IDS = np.array([[3, 1, 1, 4, 1], [3, 3, 2, 1, 3]])


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
