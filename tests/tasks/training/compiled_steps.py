"""Compiles a training step and an inference step of small tasks by XLA, and prints what is in them.

    KERAS_BACKEND=... python compiled_steps.py KIND...

Batches are padded to one of a few lengths, by `padding="bucket"`. The last line of the output is JSON: kind -> what
`described` tells of each step's program, whether the loss is finite and all trained weights moved; and on JAX whether
the training step was given the arrays of all weights and moments, to write over them.
"""

import gc
import json
import re
import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from step_kinds import KINDS, make_task

import keras_bert_layers as kbl

gc.disable()  # tracing makes millions of objects that live as long as their graph
# Sums are rounded in another order.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def described(program: str) -> dict[str, list[str]]:
    """The operations of a program of HLO or StableHLO, and its sizes that are found only as it runs."""
    operations = re.findall(r"= \S+ ([\w-]+)\(", program) + re.findall(r"stablehlo\.(\w+)", program)
    return {"operations": sorted(set(operations)), "sizes": re.findall(r"\[[\d,]*<=\d+|tensor<[\dx]*\?", program)}


def batch(task: kbl.tasks.Task, kind: str) -> Any:
    *_, x, y = KINDS[kind]
    arrays = task.pipeline.batches.one(x, y, None, training=True)
    return keras.tree.map_structure(lambda leaf: leaf if leaf is None else np.asarray(leaf), arrays)


def on_tensorflow(task: kbl.tasks.Task, data: Any) -> tuple[Any, ...]:
    """The outputs, the loss, and what is in the functions of TensorFlow that compute them."""
    data = keras.tree.map_structure(lambda leaf: leaf if leaf is None else tf.constant(leaf), data)
    found = []
    for step, given in ((task.predict_step, data[:1]), (task.train_step, data)):
        compiled = tf.function(step, jit_compile=True, autograph=False)
        results = compiled(given)
        graph = compiled.get_concrete_function(given).graph.as_graph_def()
        nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
        strings = [
            node.op for node in nodes for value in node.attr.values() if value.type == tf.string.as_datatype_enum
        ]
        program = described(compiled.experimental_get_compiler_ir(given)(stage="hlo"))
        found.append((results, {**program, "strings": strings}))
    (outputs, inference), (logs, training) = found
    return outputs, logs["loss"], {"inference": inference, "training": training}


def on_jax(task: kbl.tasks.Task, data: Any) -> tuple[Any, ...]:
    """The outputs, the loss, and what is in the functions of JAX that compute them."""
    import jax

    def variables(**kinds: bool) -> tuple[Any, ...]:
        return task._get_jax_state(**kinds)

    inference = jax.jit(task.predict_step).lower(
        variables(trainable_variables=True, non_trainable_variables=True), data[:1]
    )
    outputs, _ = inference.compile()(variables(trainable_variables=True, non_trainable_variables=True), data[:1])
    with keras.StatelessScope():  # makes the variables of losses and metrics
        task._symbolic_build(data_batch=data)
    state = variables(
        trainable_variables=True, non_trainable_variables=True, optimizer_variables=True, metrics_variables=True
    )
    training = jax.jit(task.train_step).lower(state, data)
    logs = task.train_on_batch(*data, return_dict=True)  # by the function that Keras makes
    written = all(value.is_deleted() for value in (*state[0], *(value for value in state[2] if value.ndim)))
    programs = {"inference": described(inference.as_text()), "training": described(training.as_text())}
    return outputs, logs["loss"], {**programs, "written": written}


def compiled(kind: str) -> dict[str, Any]:
    task = make_task(kind, jit_compile=True)
    task.optimizer.build(task.trainable_variables)
    data = batch(task, kind)
    expected = task(data[0], training=False)
    before = [np.array(weight) for weight in task.trainable_weights]  # copies, as JAX gives the arrays away
    outputs, loss, found = (on_jax if keras.backend.backend() == "jax" else on_tensorflow)(task, data)
    for ours, theirs in zip(keras.tree.flatten(outputs), keras.tree.flatten(expected), strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), **CLOSE)
    moved = [np.abs(np.asarray(new) - old).max() > 0 for new, old in zip(task.trainable_weights, before, strict=True)]
    return {**found, "finite": bool(np.isfinite(loss)), "moved": all(map(bool, moved))}


print(json.dumps({kind: compiled(kind) for kind in sys.argv[1:]}))
