"""A training step with and without rematerialization, which must change every weight, and alike."""

import keras
import numpy as np


def assert_equal_steps(make_task, inputs, *, run_eagerly, atol, prepare=lambda task: None):
    """One step of each; `prepare` sets the dropout's random numbers of a compiled task."""
    after = []
    for rematerialize in (False, True):
        task = make_task()
        task.backbone.rematerialize = rematerialize
        task.compile(keras.optimizers.SGD(0.1), run_eagerly=run_eagerly)
        prepare(task)
        before = [np.array(weight) for weight in task.trainable_weights]
        task.train_on_batch(inputs, np.array([0, 1, 1]))
        after.append([np.asarray(weight) for weight in task.trainable_weights])
        for old, new, weight in zip(before, after[-1], task.trainable_weights, strict=True):
            assert np.abs(new - old).max() > 0, weight.path
    for plain, again in zip(*after, strict=True):
        np.testing.assert_allclose(again, plain, atol=atol)
