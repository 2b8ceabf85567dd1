"""Batches made where TensorFlow is not installed, bit for bit those that TensorFlow makes."""

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import keras
import numpy as np
import pytest
import trainings

from keras_bert_layers._internal import numpy_tensorflow
from keras_bert_layers.tasks.feeding import keras_batches
from keras_bert_layers.tasks.feeding.epochs import Epochs, RowOrder

KINDS = ("texts", "masks", "words", "windows", "queries")
ORDERS = (None, RowOrder.AS_GIVEN, RowOrder.SHUFFLED, RowOrder.BY_LENGTH)  # None for evaluation
# TensorFlow is hidden, and tensorflow-text.
PROGRAM = """
import pickle, sys
sys.modules.update(tensorflow=None, tensorflow_text=None)
from test_without_tensorflow import KINDS, batches_of
pickle.dump({kind: batches_of(kind) for kind in KINDS}, sys.stdout.buffer)
"""


def batches_of(kind):
    """All arrays of two epochs, for each order of rows."""
    *_, x, y, _ = trainings.KINDS[kind]
    pipeline, found = trainings.make_task(kind).pipeline, {}
    for order in ORDERS:
        turns = (0, 1) if order else (0,)
        epochs = [order and Epochs(order, lambda turn=turn: (5, turn, turn)) for turn in turns]
        data = [batch for epoch in epochs for batch in pipeline.batches(x, y, batch_size=7, epochs=epoch)]
        found[order] = [np.asarray(array) for array in keras.tree.flatten(data) if array is not None]
    return found


@pytest.fixture(scope="module")
def without_tensorflow():
    pytest.importorskip("jax", reason="the NumPy backend of Keras needs JAX")
    paths = [*map(str, (Path(__file__).parent, Path(trainings.__file__).parent)), os.environ.get("PYTHONPATH", "")]
    variables = {**os.environ, "KERAS_BACKEND": "numpy", "PYTHONPATH": os.pathsep.join(paths)}
    result = subprocess.run([sys.executable, "-c", PROGRAM], env=variables, check=True, stdout=subprocess.PIPE)
    return pickle.loads(result.stdout)


# The README's command installs no JAX.
@pytest.mark.slow
@pytest.mark.usefixtures("in_graph")
@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_equal(without_tensorflow, kind):
    for order, expected in batches_of(kind).items():
        found = without_tensorflow[kind][order]
        assert len(found) == len(expected) > 2
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("length", [9, numpy_tensorflow.data.UNKNOWN_CARDINALITY])
def test_no_thread_reads_ahead_afterwards(length, monkeypatch):
    monkeypatch.setattr(keras_batches, "is_dataset", lambda data: True)
    numbers = numpy_tensorflow.data.Dataset.range(9).apply(numpy_tensorflow.data.assert_cardinality(length))
    before = threading.active_count()
    with keras_batches.fed(numbers.prefetch(1)) as (batches,):
        first = batches[0] if length == 9 else next(batches)
        assert (first, threading.active_count()) == (0, before + 1)
    assert threading.active_count() == before
