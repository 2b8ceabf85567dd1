"""Evaluates small tasks of every kind on one device of TensorFlow, and on two under `MirroredStrategy`.

    python mirrored_evaluations.py KIND...

The last line of the output is JSON: kind -> what one device found, and what two found: the results of `evaluate`, or
the error, and the outputs of `predict` for ids. 7 rows in batches of 3: two devices get 2 and 1, at the end 1 and 0.
"""

import gc
import json
import sys
from typing import Any

import keras
import tensorflow as tf
from step_kinds import KINDS, make_task

from keras_bert_layers.tasks import TokenRate
from keras_bert_layers.tasks.feeding.keras_batches import for_keras

gc.disable()  # tracing makes millions of objects that live as long as their graph
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def found(kind: str, strategy: Any) -> dict[str, Any]:
    *_, x, y = KINDS[kind]
    with strategy.scope():
        task = make_task(kind, padding="max_length", run_eagerly=strategy is not mirrored)
    TokenRate().set_model(task)
    try:
        evaluation = task.evaluate(x, y, batch_size=3, verbose=0, return_dict=True)
    except RuntimeError as error:
        evaluation = str(error)
    ids = tf.data.Dataset.from_tensor_slices(task.pipeline.batches.one(x, y, None)[0]).batch(3)
    outputs = keras.tree.flatten(task.predict(for_keras(ids), verbose=0))
    return {"evaluation": evaluation, "predictions": [output.ravel().tolist() for output in outputs]}


print(json.dumps({kind: [found(kind, tf.distribute.get_strategy()), found(kind, mirrored)] for kind in sys.argv[1:]}))
