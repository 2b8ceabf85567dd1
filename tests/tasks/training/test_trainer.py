"""Ctrl-C while a training function is traced."""

import inspect

import keras
import pytest
import tensorflow as tf

from keras_bert_layers import BertClassifier

TEXTS, LABELS = ["a good film", "bad night"], [1, 0]


@pytest.fixture
def interrupted(new_backbone, preprocessor, monkeypatch):
    """A classifier whose first trace of a step was stopped after it had made a variable, as plain optimizers do."""
    made = []

    def stop(self, *arguments, **options):
        made.append(keras.Variable(0.0))
        with tf.init_scope():
            made.append(tf.Variable(0.0))
        made.append(tf.Variable(0.0))
        raise KeyboardInterrupt

    def interrupted(method, *arguments, **options):
        task = BertClassifier(new_backbone(), 2, preprocessor=preprocessor)
        with monkeypatch.context() as patch:
            patch.setattr(BertClassifier, "compute_loss", stop)
            with pytest.raises(KeyboardInterrupt):
                getattr(task, method)(*arguments, **options)
        return task

    return interrupted


def test_fit_again(interrupted):
    task = interrupted("fit", TEXTS, LABELS, verbose=0)
    assert task.train_function is None
    assert len(task.fit(TEXTS, LABELS, verbose=0).history["loss"]) == 1


def test_evaluation_and_single_steps_are_traced_again_too(interrupted):
    assert interrupted("evaluate", TEXTS, LABELS, verbose=0).test_function is None
    assert interrupted("train_on_batch", TEXTS, LABELS).train_function is None


def test_signatures_are_kerass():
    assert list(inspect.signature(BertClassifier.fit).parameters)[:4] == ["self", "x", "y", "batch_size"]
