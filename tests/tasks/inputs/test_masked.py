"""Masked rows of a `RowSource`: rows, order and masks of each epoch; alone, and through `fit`."""

import functools
import itertools

import keras
import numpy as np
import pytest

from keras_bert_layers import BertMaskedLM, BertPreprocessor, BertPretrainer, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import Masking
from keras_bert_layers.tasks.feeding.epochs import RowOrder
from keras_bert_layers.tasks.inputs import DocumentInputs, MaskedInputs
from keras_bert_layers.tasks.inputs.masked import equally_many

MAX_LENGTH = 9


class Source:
    """Rows of random words; each epoch's rows have one word more than those of the epoch before."""

    max_length = MAX_LENGTH
    num_rows = (11, 12)
    num_duplicates = 2
    static_masks = False
    seed = 0

    def __init__(self, tokenizer, *, has_labels, is_packed=False):
        self.tokenizer = tokenizer
        self.rule = type("Rule", (), {"has_labels": has_labels, "is_packed": is_packed})()

    def dataset(self, epoch):
        spec = {name: tf.TensorSpec([None], tf.int32) for name in ("token_ids", "segment_ids", "padding_mask")}
        spec |= {"row": tf.TensorSpec([], tf.int64)}
        if self.rule.has_labels:
            spec["label"] = tf.TensorSpec([], tf.int32)
        return tf.data.Dataset.from_generator(self.rows, args=(epoch,), output_signature=spec)

    def rows(self, epoch):
        generator = np.random.default_rng(int(epoch))
        for number in range(self.num_rows[0] + int(epoch)):
            words = generator.integers(5, self.tokenizer.vocabulary_size(), size=generator.integers(1, MAX_LENGTH - 2))
            ids = np.array([self.tokenizer.start_id, *words, self.tokenizer.separator_id], np.int32)
            row = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
            row["row"] = 1000 * number
            yield row | ({"label": number % 2} if self.rule.has_labels else {})


@pytest.fixture(scope="module")
def inputs(tokenizer):
    """Gives the data of a task, without a model; the same for the same options, which traces its functions once."""

    @functools.cache
    def inputs(cls=MaskedInputs, *, max_length=13, **options):
        return cls("Owner", BertPreprocessor(tokenizer, max_length=max_length, **options), Masking(seed=5))

    return inputs


@pytest.fixture(scope="module")
def make(new_backbone, tokenizer):
    """Makes a task, which trains eagerly."""

    def make(cls=BertMaskedLM, **options):
        keras.utils.set_random_seed(3)
        task = cls(new_backbone(), BertPreprocessor(tokenizer, max_length=13), **options)
        task.backbone.trainable = False  # the tests are of the data
        task.compile(run_eagerly=True)
        return task

    return make


def rows_of(batches):
    """Each row as its masked ids, mask positions and labels, without padding."""
    found = []
    for inputs, labels, weights in keras.tree.map_structure(np.asarray, list(batches)):
        for row in range(len(inputs["token_ids"])):
            size, masks = int(np.sum(inputs["padding_mask"][row])), int(np.sum(weights[row]))
            parts = inputs["token_ids"][row, :size], inputs["mask_positions"][row, :masks], labels[row, :masks]
            found.append(tuple(tuple(part.tolist()) for part in parts))
    return found


def test_rows_and_their_masks_do_not_depend_on_the_batch(inputs, tokenizer, make_epochs):
    source = Source(tokenizer, has_labels=False)
    small, large = (rows_of(inputs().batches(source, batch_size=size, epochs=make_epochs())) for size in (2, 7))
    assert small == large
    assert len(small) == Source.num_rows[0]
    restored = set()
    for ids, positions, labels in small:
        whole = np.array(ids)
        whole[list(positions)] = labels
        restored.add(tuple(whole))
    assert restored == {tuple(row["token_ids"]) for row in source.rows(0)}


def test_epochs_differ_and_evaluation_does_not(inputs, tokenizer, make_epochs):
    source = Source(tokenizer, has_labels=False)
    batches = inputs().batches(source)
    assert rows_of(batches) == rows_of(batches) == rows_of(inputs().batches(source, batch_size=3))
    batches = inputs().batches(source, epochs=make_epochs())
    assert set(rows_of(batches)).isdisjoint(rows_of(batches))


@pytest.mark.parametrize("padding", ["longest", "bucket", "max_length"])
def test_width(inputs, tokenizer, padding):
    source = Source(tokenizer, has_labels=False)
    batches = inputs(padding=padding, max_length=source.max_length).batches(source, batch_size=2)
    widths = {int(ids["token_ids"].shape[1]) for ids, _, _ in batches}
    assert (widths == {source.max_length}) == (padding != "longest")


@pytest.mark.parametrize("static_masks", [True, False])
def test_masks_of_rows_that_repeat(inputs, tokenizer, make_epochs, static_masks):
    class Again(Source):
        def rows(self, epoch):
            yield from super().rows(epoch % 2)

    source = Again(tokenizer, has_labels=False)
    source.static_masks = static_masks
    batches = inputs().batches(source, epochs=make_epochs())
    first, second, third, fourth = (set(rows_of(batches)) for _ in range(4))
    assert first.isdisjoint(second)
    shared = [len(first & third), len(second & fourth)]
    if static_masks:
        assert shared == [11, 10], "one of the twelve rows of an odd epoch is left out, and the next time another one"
    else:
        assert max(shared) < 5


def test_every_row_of_longer_duplicates_is_trained_on(tokenizer):
    class Longer(Source):
        num_rows = (11, 14, 12)

        def rows(self, epoch):
            rows = itertools.islice(super().rows(3), self.num_rows[epoch % 3])
            yield from ({**row, "row": number} for number, row in enumerate(rows))

    source = Longer(tokenizer, has_labels=False)
    left_out = {}
    for epoch in range(18):
        rows = [int(row["row"]) for row in equally_many(source, tf.constant(epoch, tf.int64))]
        assert len(rows) == 11
        assert rows == sorted(rows)
        left_out[epoch] = sorted(set(range(source.num_rows[epoch % 3])) - set(rows))
    assert [left_out[epoch] for epoch in range(0, 18, 3)] == [[]] * 6
    assert [left_out[epoch] for epoch in range(1, 18, 3)] == [
        [11, 12, 13],
        [8, 9, 10],
        [5, 6, 7],
        [2, 3, 4],
        [0, 1, 13],
        [10, 11, 12],
    ]
    assert [left_out[epoch] for epoch in range(2, 18, 3)] == [[11], [10], [9], [8], [7], [6]]


def test_a_second_fit_continues_with_the_next_epoch(make, tokenizer):
    epochs = []

    class Recorded(Source):
        def rows(self, epoch):
            epochs.append(int(epoch))
            yield from super().rows(epoch)

    task = make()
    source = Recorded(tokenizer, has_labels=False)
    for num_epochs in (2, 1):
        task.fit(source, batch_size=16, epochs=num_epochs, verbose=0)
    assert epochs == [0, 1, 2]


def test_steps_continue_with_the_next_epoch(make, tokenizer):
    epochs = []

    class Recorded(Source):
        num_rows = None

        def rows(self, epoch):
            epochs.append(int(epoch))
            yield from Source.rows(type("Some", (Source,), {})(self.tokenizer, has_labels=False), epoch)

    history = (
        make().fit(Recorded(tokenizer, has_labels=False), batch_size=8, epochs=2, steps_per_epoch=3, verbose=0).history
    )
    assert len(history["loss"]) == 2
    assert epochs[:3] == [0, 1, 2]


def test_pairs_for_the_pretrainer(make, tokenizer):
    task = make(BertPretrainer)
    source = Source(tokenizer, has_labels=True)
    history = task.fit(source, validation_data=source, batch_size=16, verbose=0).history
    assert {"masked_lm_accuracy", "next_sentence_accuracy", "val_loss"} <= set(history)


def test_rows_of_another_kind_are_refused(inputs, tokenizer, make_epochs):
    other = BertTokenizer([*tokenizer.get_config()["vocabulary"], "more"])
    rows, pairs = (Source(tokenizer, has_labels=has_labels) for has_labels in (False, True))
    for cls, source, y, message in [
        (MaskedInputs, pairs, None, "`Owner`: `x` must hold rows without labels"),
        (DocumentInputs, rows, None, "`Owner`: `x` must hold pairs of texts"),
        (MaskedInputs, Source(other, has_labels=False), None, "`x` must hold ids of the task's own tokenizer"),
        (MaskedInputs, rows, ["a"], "`y` must be None where rows are made of documents"),
    ]:
        with pytest.raises(ValueError, match=message):
            inputs(cls).batches(source, y, epochs=make_epochs())
    with pytest.raises(ValueError, match="`group_by_length` must be False"):
        inputs().batches(rows, epochs=make_epochs(order=RowOrder.BY_LENGTH))
    rows.num_rows = None
    with pytest.raises(ValueError, match="`steps_per_epoch` must be given"):
        inputs().batches(rows, epochs=make_epochs())


def test_fit_refuses_rows_of_another_kind(make, tokenizer):
    with pytest.raises(ValueError, match="`BertMaskedLM`: `x` must hold rows without labels"):
        make().fit(Source(tokenizer, has_labels=True), verbose=0)
    with pytest.raises(ValueError, match="`group_by_length` must be False"):
        make().fit(Source(tokenizer, has_labels=False), verbose=0, group_by_length=True)
