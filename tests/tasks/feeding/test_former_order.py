"""Trainings that were backed up before rows had an order of this project's own: TensorFlow's order, computed here."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.preprocessing import Masking
from keras_bert_layers.tasks.feeding import former_order
from keras_bert_layers.tasks.feeding.epochs import Epochs, RowOrder
from keras_bert_layers.tasks.inputs import MaskedInputs
from keras_bert_layers.tasks.inputs.answer_spans import as_steps

SEED = 12
FORMER = Epochs(RowOrder.SHUFFLED, lambda: (-1 - SEED, 2, 4), may_be_former=True)
BY_LENGTH = dataclasses.replace(FORMER, order=RowOrder.BY_LENGTH)
LENGTHS = tf.constant(np.random.default_rng(0).integers(1, 9, 250))


@pytest.fixture
def seed():
    """That of the epoch; no other is mixed into it."""
    tf.random.set_seed(1)
    return int(np.random.SeedSequence([SEED, 2, 0]).generate_state(1, np.uint64)[0]) >> 1


def shuffled(dataset, buffer, seed):
    return list(dataset.shuffle(buffer, seed=seed, reshuffle_each_iteration=False).as_numpy_iterator())


def as_lists(batches):
    return [np.asarray(batch).tolist() for batch in batches]


def lengths_of(rows):
    return tf.gather(LENGTHS, rows)


def sorted_batches(rows, seed):
    """Batches of two, of which 50 at a time are sorted by length, shuffled."""
    groups = [sorted(rows[start : start + 100], key=lambda row: -LENGTHS[row]) for start in range(0, len(rows), 100)]
    batches = tf.constant([group[start : start + 2] for group in groups for start in range(0, len(group), 2)])
    return shuffled(tf.data.Dataset.from_tensor_slices(batches), 50, seed)


def test_rows(seed):
    rows = shuffled(tf.data.Dataset.range(250), 250, seed)
    assert as_lists(FORMER.batches(250, 2, lengths=lengths_of)) == as_lists(np.reshape(rows, [-1, 2]))
    assert as_lists(BY_LENGTH.batches(250, 2, lengths=lengths_of)) == as_lists(sorted_batches(rows, seed))
    in_order = dataclasses.replace(FORMER, order=RowOrder.AS_GIVEN)
    assert as_lists(in_order.batches(4, 2, lengths=lengths_of)) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("epochs", [FORMER, BY_LENGTH], ids=["shuffled", "by length"])
def test_windows(epochs, seed):
    made = {"number": tf.range(250), "padding_mask": tf.sequence_mask(LENGTHS, 9, tf.int32)}
    windows = tf.data.Dataset.from_tensor_slices((made,)).batch(3)
    rows = [int(part["number"]) for (part,) in shuffled(windows.unbatch(), 1024, seed)]
    expected = np.reshape(rows, [-1, 2]) if epochs is FORMER else sorted_batches(rows, seed)
    assert as_lists(step["number"] for (step,) in as_steps(windows, 2, epochs)) == as_lists(expected)


def test_masks(preprocessor, seed):
    inputs, texts = MaskedInputs("Owner", preprocessor, Masking()), [f"good film {'a ' * row}" for row in range(6)]
    rows = np.reshape(shuffled(tf.data.Dataset.range(6), 6, seed), [-1, 3])
    seeds = tf.data.Dataset.random(seed).take(2)
    expected = [inputs.encode(np.array(texts)[part], seed=of_batch) for part, of_batch in zip(rows, seeds, strict=True)]
    found = list(inputs.batches(texts, batch_size=3, epochs=FORMER))
    for batch, other in zip(found, expected, strict=True):
        for part, values in zip(*map(tf.nest.flatten, (batch, other)), strict=True):
            np.testing.assert_array_equal(part, values)


def test_without_tensorflow(monkeypatch):
    monkeypatch.setattr(former_order, "is_tensorflow", lambda: False)
    assert next(iter(dataclasses.replace(FORMER, place=lambda: (SEED, 2, 4)).batches(3, 3, lengths=lengths_of))).shape
    with pytest.raises(ModuleNotFoundError, match="To resume it needs TensorFlow, which is not installed here"):
        next(FORMER.seeds())
