"""The order of rows and the random state of epochs: on datasets alone, and through `fit`."""

import dataclasses
import itertools

import numpy as np
import pytest

from keras_bert_layers import (
    BertClassifier,
    BertPretrainer,
)
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import Masking, SpanPreprocessor
from keras_bert_layers.tag_scheme import tag_scheme
from keras_bert_layers.tasks.feeding.epochs import Epochs, RowOrder, batches_of_rows, with_num_batches
from keras_bert_layers.tasks.inputs import ChoiceInputs, MaskedInputs, QuestionInputs, TextInputs, WordInputs
from keras_bert_layers.tasks.inputs.tags import as_tags, as_words
from keras_bert_layers.tasks.labels import make_labels


def epochs(seed=3, epoch=0, num_epochs=0, **options):
    return Epochs(RowOrder.SHUFFLED, lambda: (seed, epoch, num_epochs), **options)


def first_seed(made):
    return next(made.seeds())


def test_a_seed_follows_from_the_training_and_its_epoch():
    assert first_seed(epochs()) == first_seed(epochs(num_epochs=5))
    assert len({first_seed(epochs(seed, epoch)) for seed in range(5) for epoch in range(5)}) == 25


def test_a_seed_of_its_own_follows_from_all_epochs_of_the_task():
    assert first_seed(epochs().seeded(7)) == first_seed(epochs(seed=4, epoch=2).seeded(7))
    assert len({first_seed(epochs(num_epochs=number).seeded(7)) for number in range(5)}) == 5
    assert first_seed(epochs().seeded(None)) == first_seed(epochs())


def test_one_epoch_or_no_end():
    (only,) = epochs().seeds()
    first, second = itertools.islice(epochs(are_endless=True).seeds(), 2)
    assert first == only != second


def rows_of(epochs, num_rows=50, batch_size=7):
    dataset = epochs.batches(num_rows, batch_size, lengths=tf.identity)
    return [rows.tolist() for rows in dataset.take(-(-num_rows // batch_size)).as_numpy_iterator()]


def test_datasets_follow_from_the_seed_and_the_epoch_alone():
    """And not from TensorFlow's global seed, which another process does not have."""

    def rows(global_seed, **options):
        tf.random.set_seed(global_seed)
        return rows_of(epochs(**options))

    assert rows(1) == rows(2)
    orders = {str(rows(1, seed=seed, epoch=epoch)) for seed in range(3) for epoch in range(3)}
    assert len(orders) == 9


def test_epochs_without_end_have_other_orders_and_all_rows():
    dataset = epochs(are_endless=True).batches(10, 4, lengths=tf.identity)
    batches = [rows.tolist() for rows in dataset.take(9).as_numpy_iterator()]
    found = [list(itertools.chain(*batches[start : start + 3])) for start in (0, 3, 6)]
    assert [sorted(rows) for rows in found] == [list(range(10))] * 3
    assert len(set(map(tuple, found))) == 3


def mixed(state):
    """SplitMix64's mixing of 64 bits."""
    for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        state = ((state ^ (state >> shift)) * multiplier) % 2**64
    return state


def in_order(seed, number, size):
    """The integers below `size`, sorted by what SplitMix64 makes of three numbers, as signed integers."""
    keys = []
    for position in range(size):
        state = mixed(seed)
        for count in (number, position):
            state = mixed((state + (count + 1) * 0x9E3779B97F4A7C15) % 2**64)
        keys.append(state - 2**64 * (state >= 2**63))
    return sorted(range(size), key=keys.__getitem__)


def test_the_order_is_that_of_splitmix64():
    """Whoever changes it changes trainings that were backed up: see `former_order`."""
    seed = first_seed(epochs())
    order = in_order(seed, 0, 50)
    assert rows_of(epochs()) == [order[start : start + 7] for start in range(0, 50, 7)]
    order, expected = in_order(seed, 0, 230), []
    for group, start in enumerate(range(0, 230, 100)):  # 50 batches of two
        rows = sorted(order[start : start + 100], reverse=True)  # the length of a row is its number
        expected += [rows[2 * batch : 2 * batch + 2] for batch in in_order(seed, 3 * group + 1, len(rows) // 2)]
    by_length = dataclasses.replace(epochs(), order=RowOrder.BY_LENGTH)
    assert rows_of(by_length, 230, 2) == expected


def test_length():
    dataset = tf.data.Dataset.range(3)
    assert with_num_batches(dataset.filter(lambda row: row >= 0), 3, None).cardinality() == 3
    assert with_num_batches(dataset.repeat(), 3, epochs(are_endless=True)).cardinality() == tf.data.INFINITE_CARDINALITY


NAMES = ["O", "B-p", "I-p"]
WORDS = as_words("Owner", [[str(n)] * n for n in range(7)])
TAGS = as_tags("Owner", [[n % 3] * n for n in range(7)], WORDS, NAMES)


def list_of_batches(rows, epochs=None):
    return list(batches_of_rows(rows, batch_size=3, lengths=tf.size, epochs=epochs))


def test_batches_hold_the_same_rows_of_every_column():
    found = list_of_batches((WORDS, (TAGS, np.arange(7)), np.arange(7)))
    assert [batch[0].to_list() for batch in found] == [WORDS[begin : begin + 3].to_list() for begin in (0, 3, 6)]
    assert [batch[1][0].to_list() for batch in found] == [TAGS[begin : begin + 3].to_list() for begin in (0, 3, 6)]
    assert np.concatenate([batch[2] for batch in found]).tolist() == list(range(7))


def test_columns_that_are_none():
    texts, weights = np.array(["a", "b"], object), np.array([1.0, 2.0])
    assert [len(batch) for batch in list_of_batches((texts, None, None))] == [1]
    ((x, y, weight),) = list_of_batches((texts, None, weights))
    assert (x.numpy().tolist(), y, weight.numpy().tolist()) == ([b"a", b"b"], None, [1.0, 2.0])


def test_shuffled(make_epochs):
    epochs = make_epochs()
    orders = [
        np.concatenate([batch[2] for batch in list_of_batches((WORDS, TAGS, np.arange(7)), epochs)]) for _ in range(2)
    ]
    for order in orders:
        assert sorted(order) == list(range(7))
    assert orders[0].tolist() != list(range(7))


# So many rows that there are three groups of 50 batches, the last one not full.
NUM_ROWS = 2 * 50 * 3 + 7


def rows_of_batches(epochs, *, num_rows=NUM_ROWS, batch_size=3):
    lengths = np.random.default_rng(5).integers(1, 100, num_rows)
    rows = np.arange(num_rows), None, None
    lengths_of = lambda rows: tf.gather(lengths, rows)  # noqa: E731
    batches = batches_of_rows(rows, batch_size=batch_size, lengths=lengths_of, epochs=epochs)
    return lengths, batches.map(lambda rows: rows)


def padding(lengths, batches):
    return sum(int((lengths[batch].max() - lengths[batch]).sum()) for batch in batches.as_numpy_iterator())


def test_every_row_once_per_epoch_and_in_another_order_each_epoch(make_epochs):
    _, batches = rows_of_batches(make_epochs(order=RowOrder.BY_LENGTH))
    epochs = [[batch.tolist() for batch in batches.as_numpy_iterator()] for _ in range(2)]
    for epoch in epochs:
        assert sorted(np.concatenate(epoch)) == list(range(NUM_ROWS))
        assert sorted(map(len, epoch)) == [1, *[3] * 102]
    assert epochs[0] != epochs[1]
    assert {frozenset(batch) for batch in epochs[0]} != {frozenset(batch) for batch in epochs[1]}


def test_less_padding_and_no_order_among_batches(make_epochs):
    lengths, shuffled = rows_of_batches(make_epochs())
    _, grouped = rows_of_batches(make_epochs(order=RowOrder.BY_LENGTH))
    assert padding(lengths, grouped) < 0.1 * padding(lengths, shuffled)
    longest = [lengths[batch].max() for batch in grouped.as_numpy_iterator()]
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.3  # without the order of batches it is -0.5


def text_of(label):
    return " ".join(["good"] * (label % 11))


def test_labels_and_weights_stay_with_their_texts(preprocessor, make_epochs):
    """The label is the length of the text, and the weight repeats the label."""
    inputs = TextInputs(
        "Owner", preprocessor, make_labels("single_label_classification", 200, class_names=None, threshold=None)
    )
    labels = list(range(51))
    texts, weights = [text_of(label) for label in labels], [float(label) for label in labels]
    seen = []
    epochs = make_epochs(order=RowOrder.BY_LENGTH)
    batches = inputs.batches(texts, labels, weights, batch_size=4, epochs=epochs)
    for ids, of_batch, weights_of_batch in batches.as_numpy_iterator():
        np.testing.assert_array_equal(of_batch, weights_of_batch)
        np.testing.assert_array_equal(ids["padding_mask"].sum(axis=1), np.minimum(of_batch % 11 + 2, 9))
        seen += of_batch.tolist()
    assert sorted(seen) == labels
    assert seen != labels


def test_fit(new_backbone, preprocessor):
    classifier = BertClassifier(new_backbone(), 2, preprocessor=preprocessor)
    classifier.backbone.trainable = False  # less work in each step
    classifier.compile(run_eagerly=True)
    texts = [text_of(row) for row in range(13)]
    history = classifier.fit(texts, [0] * 13, batch_size=5, validation_split=0.2, group_by_length=True, verbose=0)
    assert classifier.optimizer.iterations == 2
    assert sorted(history.history) == ["accuracy", "loss", "val_accuracy", "val_loss"]


def words(num_rows):
    return [["good"] * (1 + row % 5) for row in range(num_rows)]


KINDS = pytest.mark.parametrize(
    ("make", "data"),
    [
        (
            lambda made: WordInputs("Owner", made, NAMES, scheme=tag_scheme("Owner", NAMES), stride=None),
            (words(20), [["O"] * len(row) for row in words(20)]),
        ),
        (
            lambda made: QuestionInputs("Owner", SpanPreprocessor.from_preprocessor(made), fill_value=-1e9),
            ((["good ?"] * 20, [text_of(row) for row in range(20)]), ([0] * 20, [""] * 20)),
        ),
        (
            lambda made: ChoiceInputs("Owner", made, fill_value=-1e9),
            ((["good"] * 20, [[text_of(row % 9 + 1), "bad"] for row in range(20)]), [0] * 20),
        ),
        (lambda made: MaskedInputs("Owner", made, Masking()), ([text_of(row + 1) for row in range(20)], None)),
    ],
    ids=["words", "windows", "choices", "masks"],
)


@KINDS
def test_one_iterator_for_all_epochs(make, data, preprocessor):
    """It gives the batches of an iterator for each, so that an epoch follows from its number as before."""
    x, y = data
    maker = make(preprocessor).batches.maker(x, y, batch_size=4)

    def from_epoch(number):
        return Epochs(RowOrder.BY_LENGTH, lambda: (5, number, 7 + number))

    expected = [batch for number in (1, 2) for batch in maker(from_epoch(number))]
    found = list(from_epoch(1).in_one_iterator(maker, 3))
    assert len(found) == len(expected)
    for parts in zip(found, expected, strict=True):
        for one, other in zip(*map(tf.nest.flatten, parts), strict=True):
            np.testing.assert_array_equal(one, other)


@KINDS
def test_every_kind_of_data(make, data, preprocessor, make_epochs):
    """As many steps as were promised to Keras, and less padding."""
    inputs = make(preprocessor)
    x, y = data

    def num_padding(order):
        batches = inputs.batches(x, y, batch_size=4, epochs=make_epochs(order=order))
        found = [batch[0] for batch in batches]
        assert len(found) == batches.cardinality()
        return sum(int(tf.reduce_sum(1 - ids["padding_mask"])) for ids in found)

    assert num_padding(RowOrder.BY_LENGTH) < num_padding(RowOrder.SHUFFLED)


class TestErrors:
    def test_what_has_no_order(self, backbone, preprocessor):
        classifier = BertClassifier(backbone, 2, preprocessor=preprocessor)
        with pytest.raises(ValueError, match="`group_by_length` must be False if `shuffle` is False"):
            classifier.fit(["a"], [1], shuffle=False, group_by_length=True)
        dataset = tf.data.Dataset.from_tensors((["a"], [1]))
        with pytest.raises(ValueError, match="`group_by_length` must be False for a dataset, which is batched already"):
            classifier.fit(dataset, group_by_length=True)
        with pytest.raises(ValueError, match="`group_by_length` must be False for ids"):
            classifier.fit(preprocessor(["a"]), np.array([1]), group_by_length=True)
        with pytest.raises(TypeError, match="`group_by_length` must be True or False. Received: .*=1"):
            classifier.fit(["a"], [1], group_by_length=1)

    def test_documents(self, backbone, preprocessor):
        pretrainer = BertPretrainer(backbone, preprocessor)
        with pytest.raises(ValueError, match="`group_by_length` must be False where rows are made of documents"):
            pretrainer.fit([["good film", "bad film"], ["night"]], group_by_length=True)
