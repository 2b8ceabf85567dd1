"""Fixtures of the tests of tasks: small backbones, and eager training and predictions."""

import itertools

import keras
import pytest

from keras_bert_layers import BertBackbone, BertConfig
from keras_bert_layers.tasks.feeding.epochs import Epochs, RowOrder


@pytest.fixture(scope="session")
def new_backbone(vocabulary):
    """A function that makes a backbone of one layer and odd sizes; the same weights for the same seed and sizes."""

    def new_backbone(*, seed=11, dtype=None, **options):
        keras.utils.set_random_seed(seed)
        sizes = {
            "vocabulary_size": len(vocabulary),
            "hidden_dim": 15,
            "num_layers": 1,
            "num_heads": 3,
            "intermediate_dim": 21,
            "max_sequence_length": 13,
            "initializer_range": 0.3,
            "dropout": 0.0,
            "attention_dropout": 0.0,
        }
        return BertBackbone(BertConfig(**{**sizes, **options}), dtype=dtype)

    return new_backbone


@pytest.fixture(scope="session")
def trains_and_evaluates_eagerly():
    """A function that makes `fit` and `evaluate` of a task eager from now on, and leaves `predict` compiled.

    Each structure of data has a graph of its own, which takes longer to trace than a few steps take.
    """

    def eager(task):
        task.run_eagerly = True
        task.make_train_function(force=True)
        task.make_test_function(force=True)
        task.run_eagerly = False
        return task

    return eager


@pytest.fixture(scope="session")
def train_eagerly(trains_and_evaluates_eagerly):
    """A function that trains a task on one batch, again and again, and returns the logs of each step."""

    def train(task, x, y, *, steps):
        trains_and_evaluates_eagerly(task)
        ids, labels, _ = task.pipeline.batches.one(x, y)
        logs = []
        for _ in range(steps):
            task.reset_metrics()
            logs.append(task.train_on_batch(ids, labels, return_dict=True))
        return logs

    return train


@pytest.fixture(scope="session")
def make_epochs():
    """Makes the epochs of one `fit`: each pass over a dataset is the next epoch."""

    def make(seed=3, order=RowOrder.SHUFFLED):
        numbers = itertools.count()

        def place():
            number = next(numbers)
            return seed, number, number

        return Epochs(order, place)

    return make
