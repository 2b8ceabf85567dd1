"""Logits with in-batch negatives, one at a time by the texts themselves, and as torch computes the loss."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.losses import in_batch
from keras_bert_layers.tasks.objectives import contrastive

# Sums of eleven float32 products of numbers near 1, in another order, over a temperature of 0.05.
TOLERANCE = 1e-4
# Anchors, partners, and two negatives per row; "x" belongs to "a" and to "b", and "a" has two partners.
TABLE = np.array(
    [["a", "x", "u", "v"], ["b", "x", "y", ""], ["a", "z", "x", "w"], ["c", "y", "", ""], ["d", "a", "c", "d"]], object
)


def vectors(num_rows, seed=0):
    rows = np.random.default_rng(seed).normal(size=(num_rows, 11)).astype("float32")
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def reference(first, candidates, temperature, table):
    """The same logits, one at a time, by the texts themselves."""
    names = list(table[:, 1:].T.reshape(-1))
    logits = first.astype("float64") @ candidates.T.astype("float64") / temperature
    for row, (anchor, *_) in enumerate(table):
        right = {partner for other, partner, *_ in table if other == anchor}
        for column, name in enumerate(names):
            is_absent = name == "" and column >= len(table)
            if column != row and (name in right or name == anchor or is_absent):
                logits[row, column] = -1e9
    return logits


def numbers(table):
    return contrastive.text_ids(tf.constant(table))


def test_logits():
    first, candidates = vectors(5), vectors(15, seed=1)
    found = in_batch.in_batch_logits(first, candidates, temperature=0.05, texts=numbers(TABLE))
    np.testing.assert_allclose(found, reference(first, candidates, 0.05, TABLE), atol=TOLERANCE, rtol=1e-6)
    assert (np.asarray(found) == -1e9).sum() == 5 * 3 + 4 + 2 + 4 + 2 + 1  # absent ones, then what is right, by row


def test_logits_of_texts_that_count_as_different():
    first, candidates = vectors(3), vectors(6, seed=1)
    found = in_batch.in_batch_logits(first, candidates, temperature=0.5)
    np.testing.assert_allclose(found, 2 * first @ candidates.T, atol=TOLERANCE)


def test_both_directions():
    table = TABLE[:, :3]
    first, candidates = vectors(5), vectors(10, seed=1)
    forward = in_batch.in_batch_logits(first, candidates, temperature=0.05, texts=numbers(table))
    both = np.asarray(in_batch.in_both_directions(forward))
    assert both.shape == (10, 10)
    np.testing.assert_array_equal(both[:5], forward)
    np.testing.assert_array_equal(both[5:, :5], np.asarray(forward)[:, :5].T)
    assert (both[5:, 5:] == -1e9).all()


def test_gradients_are_finite_where_all_is_left_out():
    first = tf.Variable(vectors(3))
    texts = numbers(np.array([["a", "x"]] * 3, object))
    with tf.GradientTape() as tape:
        logits = in_batch.in_batch_logits(first, vectors(3, seed=1), temperature=0.05, texts=texts)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(in_batch.row_indices(logits), logits)
    assert float(loss) == 0  # nothing to tell apart
    assert np.isfinite(np.asarray(tape.gradient(loss, first))).all()


@pytest.mark.peers
@pytest.mark.parametrize("num_negatives", [0, 2])
def test_loss_is_that_of_torch(num_negatives):
    """Cross entropy over scaled cosines with the own partner as the label, as sentence-transformers trains."""
    torch = pytest.importorskip("torch")
    first, candidates = 3 * vectors(7), 2 * vectors(7 * (1 + num_negatives), seed=1)
    cosines = torch.nn.functional.cosine_similarity(
        torch.tensor(first)[:, None], torch.tensor(candidates)[None], dim=-1
    )
    expected = torch.nn.functional.cross_entropy(20 * cosines, torch.arange(7))
    table = np.arange(7 * (2 + num_negatives)).reshape(7, -1).astype(str).astype(object)
    logits = in_batch.in_batch_logits(first / 3, candidates / 2, temperature=1 / 20, texts=numbers(table))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(in_batch.row_indices(logits), logits)
    assert float(loss) == pytest.approx(float(expected), abs=TOLERANCE)
