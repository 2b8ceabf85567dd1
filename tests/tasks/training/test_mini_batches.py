"""Training a few texts of a large batch at a time, beside the batch at once."""

import gc
import weakref

import keras
import numpy as np
import pytest

from keras_bert_layers import BertDualEncoder, BertPreprocessor, BertSentenceEncoder, losses

WORDS = "good bad film night happy a !".split()
GENERATOR = np.random.default_rng(3)
# Sums of float32 products in another order.
TOLERANCE = 1e-6


def texts(number):
    return [" ".join(GENERATOR.choice(WORDS, GENERATOR.integers(1, 9))) for _ in range(number)]


X = texts(11), texts(11), [texts(GENERATOR.integers(0, 3)) for _ in range(11)]


@pytest.fixture(scope="module", params=["one encoder", "two encoders"])
def make(request, new_backbone, tokenizer):
    def make(dropout):
        backbone = new_backbone(seed=2, dropout=dropout, attention_dropout=dropout)
        preprocessor = BertPreprocessor(tokenizer, max_length=13)
        if request.param == "one encoder":
            return BertSentenceEncoder(backbone, preprocessor=preprocessor)
        other = new_backbone(seed=3, dropout=dropout, attention_dropout=dropout)
        return BertDualEncoder(backbone, other, preprocessor=preprocessor)

    return make


def trained(task, size, **options):
    """What two steps change of the weights, by a rate of 1; and the losses."""
    keras.utils.set_random_seed(4)
    for variable in task.variables:
        if variable.name == "seed_generator_state":
            variable.assign([5, 0])
    loss = losses.MultipleNegativesRanking(temperature=0.5, mini_batch_size=size)
    task.compile(keras.optimizers.SGD(1.0), loss, **options)
    before = [keras.ops.convert_to_numpy(weight) for weight in task.trainable_weights]
    history = task.fit(X, batch_size=11, epochs=2, shuffle=False, verbose=0).history["loss"]
    after = [keras.ops.convert_to_numpy(weight) for weight in task.trainable_weights]
    for weight, value in zip(task.trainable_weights, before, strict=True):
        weight.assign(value)
    return [new - old for new, old in zip(after, before, strict=True)], history


def compare(task, size, **options):
    (expected, their_losses), (found, our_losses) = trained(task, None, **options), trained(task, size, **options)
    assert our_losses == pytest.approx(their_losses, abs=TOLERANCE)
    largest = max(np.abs(change).max() for change in expected)
    assert largest > 1e-3
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=TOLERANCE * max(1, largest))


@pytest.mark.parametrize(("dropout", "size"), [(0.0, 7), (0.3, 64)])
def test_gradients_are_those_of_the_batch(make, dropout, size):
    """A part of all rows has the dropout of the batch at once too; smaller ones draw their own."""
    compare(make(dropout), size, run_eagerly=True)


def test_dropout_of_both_passes_is_equal(make):
    """With other masks in the second pass, a step against the gradient would not lower the loss as foreseen."""
    task = make(0.3)
    loss = losses.MultipleNegativesRanking(temperature=0.5, mini_batch_size=4)
    task.compile(keras.optimizers.SGD(1e-3), loss, run_eagerly=True)
    states = [variable for variable in task.variables if variable.name == "seed_generator_state"]

    def step():
        keras.utils.set_random_seed(4)  # on torch, Keras's dropout draws from torch's own numbers
        for state in states:
            state.assign([7, 0])
        return task.fit(X, batch_size=11, shuffle=False, verbose=0).history["loss"][0]

    step()  # in the first one, Keras draws more of them
    before = [keras.ops.convert_to_numpy(weight) for weight in task.trainable_weights]
    first = step()
    moved = [
        keras.ops.convert_to_numpy(weight) - old for weight, old in zip(task.trainable_weights, before, strict=True)
    ]
    expected = sum(np.sum(change.astype("float64") ** 2) for change in moved) / 1e-3
    assert expected > 1e-4
    assert first - step() == pytest.approx(expected, rel=0.05)


def test_compiled(new_backbone, tokenizer):
    """The same, and the functions that TensorFlow keeps do not keep the model."""
    task = BertSentenceEncoder(new_backbone(), preprocessor=BertPreprocessor(tokenizer, max_length=13))
    compare(task, 8)
    reference = weakref.ref(task.backbone)
    del task
    keras.backend.clear_session()
    gc.collect()
    assert reference() is None
