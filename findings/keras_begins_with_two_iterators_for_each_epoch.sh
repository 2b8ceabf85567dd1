#!/usr/bin/env bash
# Keras 3.15.1 with TensorFlow 2.21.0: `fit` makes two iterators for each epoch, if a dataset states its length.
#
# One would think that a `tf.data.Dataset` whose length is known is the best case for `fit`. But Keras makes an iterator
# after the last step of an epoch, in case the next epoch needs it, and the next epoch makes one of its own; `evaluate`
# makes two as well. An iterator looks free, as nothing runs before its first element. It is not: TensorFlow optimizes
# all functions of the pipeline anew for each. A function of 1,500 operations, as a tokenizer in graph has them, takes
# tenths of a second, which is most of the time of an epoch of a small data set. A dataset without end and
# `steps_per_epoch` have one iterator for all epochs.
#
# Seen: 6 iterators in 3 epochs with a length, 1 with `repeat()` and `steps_per_epoch`; 2 in one `evaluate`, 1 with
# `steps`. With the function of 1,500 operations, an epoch of two steps took several times as long with a length.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet keras==3.15.1 tensorflow==2.21.0
cat >"$folder/program.py" <<'END'
import time

import keras
import numpy as np
import tensorflow as tf

made, original = 0, tf.data.Dataset.__iter__


def counted(dataset):
    global made
    made += 1
    return original(dataset)


tf.data.Dataset.__iter__ = counted


def function_of_many_operations(x, y):
    for index in range(500):
        x = tf.math.tanh(x + index) * 0.5
    return x, y


rows = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
dataset = tf.data.Dataset.from_tensor_slices(rows).batch(4).map(function_of_many_operations)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(dataset, verbose=0)  # builds the loss
model.evaluate(dataset, verbose=0)


def iterators(run):
    global made
    made, begin = 0, time.perf_counter()
    run()
    return made, time.perf_counter() - begin


def fit(data, epochs, **options):
    return iterators(lambda: model.fit(data, epochs=epochs, verbose=0, **options))


with_length, seconds = fit(dataset, 3)
with_steps, _ = fit(dataset.repeat(), 3, steps_per_epoch=2)
evaluated, _ = iterators(lambda: model.evaluate(dataset, verbose=0))
evaluated_steps, _ = iterators(lambda: model.evaluate(dataset.repeat(), steps=2, verbose=0))
print("iterators in 3 epochs:", with_length, "with a length,", with_steps, "with steps_per_epoch")
print("iterators in evaluate:", evaluated, "with a length,", evaluated_steps, "with steps")
assert (with_length, with_steps, evaluated, evaluated_steps) == (6, 1, 2, 1)

epochs = 10
_, slow = fit(dataset, epochs)
_, fast = fit(dataset.repeat(), epochs, steps_per_epoch=2)
print(f"milliseconds of an epoch: {1000 * slow / epochs:.0f} with a length, {1000 * fast / epochs:.0f} with steps_per_epoch")
assert slow > 1.5 * fast
END
"$folder/environment/bin/python" "$folder/program.py"
