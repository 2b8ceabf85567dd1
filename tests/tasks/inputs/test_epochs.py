import itertools

import tensorflow as tf

from keras_bert_layers.tasks.inputs.epochs import Epochs, RowOrder, of_length


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


def test_datasets_follow_from_the_seed_alone():
    """And not from TensorFlow's global seed, which another process does not have."""

    def rows(global_seed, **options):
        tf.random.set_seed(global_seed)
        dataset = epochs(**options).dataset(lambda seed: tf.data.Dataset.range(50).shuffle(50, seed=seed))
        return [int(row) for row in dataset]

    assert rows(1) == rows(2) != rows(1, epoch=1)


def test_length():
    dataset = tf.data.Dataset.range(3)
    assert of_length(dataset.filter(lambda row: row >= 0), 3, None).cardinality() == 3
    assert of_length(dataset.repeat(), 3, epochs(are_endless=True)).cardinality() == tf.data.INFINITE_CARDINALITY
