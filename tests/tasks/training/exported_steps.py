"""Exports an encoder and a training step by `jax.export` for processors, TPUs and Nvidia GPUs; runs it here.

    KERAS_BACKEND=jax python exported_steps.py

The last line of the output is JSON: step -> its platforms, the number of bytes, and the largest difference from Keras.
"""

import json
from typing import Any

import jax
import keras
import numpy as np
from jax import export
from step_kinds import KINDS, make_task

PLATFORMS = ("cpu", "tpu", "cuda")


def variables(task: Any) -> tuple[Any, ...]:
    parts = (task.trainable_variables, task.non_trainable_variables, task.optimizer.variables, task.metrics_variables)
    return tuple([variable.value for variable in part] for part in parts)


def exported(step: Any, *data: Any) -> tuple[Any, dict[str, Any]]:
    """What the step returns after it was written and read again, and what was written."""
    written = export.export(jax.jit(step), platforms=PLATFORMS)(*data).serialize()
    read = export.deserialize(written)
    return read.call(*data), {"platforms": read.platforms, "bytes": len(written)}


def difference(found: Any, expected: Any) -> float:
    pairs = zip(keras.tree.flatten(found), keras.tree.flatten(expected), strict=True)
    return max(float(np.abs(np.asarray(ours) - np.asarray(theirs)).max()) for ours, theirs in pairs)


def encoder() -> dict[str, Any]:
    task = make_task("vectors")
    weights = variables(task)[:2]
    ids = {name: np.asarray(value) for name, value in task.preprocessor(KINDS["vectors"][2][0]).items()}
    (outputs, _), found = exported(task.predict_step, weights, (ids,))
    return found | {"difference": difference(outputs, task.predict(ids, verbose=0))}


def training_step() -> dict[str, Any]:
    task = make_task("classes")
    *_, x, y = KINDS["classes"]
    x, y, _ = task.pipeline.batches.one(x, y, None, training=True)
    data = ({name: np.asarray(value) for name, value in x.items()}, np.asarray(y))
    task.optimizer.build(task.trainable_variables)
    with keras.StatelessScope():
        task._symbolic_build(data_batch=data)
    (logs, state), found = exported(task.train_step, variables(task), data)
    expected = task.train_on_batch(*data, return_dict=True)
    parts = ([logs["loss"], *state[0]], [expected["loss"], *variables(task)[0]])
    return found | {"difference": difference(*parts)}


print(json.dumps({"encoder": encoder(), "training step": training_step()}))
