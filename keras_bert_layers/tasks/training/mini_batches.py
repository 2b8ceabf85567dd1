"""`in_mini_batches`: outputs of a large batch, a few rows at a time, computed again for gradients (GradCache)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Ids


def in_mini_batches(model: keras.Model, ids: Ids, size: int) -> Any:
    """The outputs of a model in training, of which memory holds the activations of a few rows only.

    Each part of the rows is computed once for its outputs, and once more for its gradients, with the same dropout. The
    gradients are those of the rows together.

    Args:
        model: from a dictionary of ids to one tensor, rows first. On TensorFlow, which keeps it while its functions
            live, it must not refer to the task.
        ids: its inputs, rows first.
        size: the most rows at a time.

    Returns:
        The outputs of all rows.

    References:
        Gao et al. 2021, arXiv:2101.06983; it differs from rematerialization in that the whole model is one part.
    """
    run = {"tensorflow": _on_tensorflow, "jax": _on_jax, "torch": _on_torch}[keras.backend.backend()]
    return run(model, {name: keras.ops.convert_to_tensor(values) for name, values in ids.items()}, size)


def _seeds(model: keras.Model) -> list[Any]:
    """What decides the dropout of the next call."""
    return [variable for variable in model.variables if variable.name == "seed_generator_state"]


def _on_tensorflow(model: keras.Model, ids: dict[str, Any], size: int) -> Any:
    names, arrays, shape = list(ids), list(ids.values()), model.output.shape[1:]
    seeds = _seeds(model)

    def part(arrays: Any, start: Any) -> Any:
        rows = [array[start : start + size] for array in arrays]
        return model(dict(zip(names, rows, strict=True)), training=True)

    @tf.custom_gradient
    def run(*arrays: Any) -> Any:
        before, num_rows = [tf.identity(seed.value) for seed in seeds], tf.shape(arrays[0])[0]

        def forward(start: Any, parts: Any) -> Any:
            return start + size, parts.write(start // size, part(arrays, start))

        def is_left(start: Any, *_: Any) -> Any:
            return start < num_rows

        parts = tf.TensorArray(tf.float32, 0, dynamic_size=True, infer_shape=False, element_shape=(None, *shape))
        *_, parts = tf.while_loop(is_left, forward, (0, parts), parallel_iterations=1)

        def gradient(upstream: Any, variables: Any = ()) -> Any:
            for seed, value in zip(seeds, before, strict=True):
                seed.assign(value)

            def backward(start: Any, *sums: Any) -> Any:
                with tf.GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(variables)
                    outputs = part(arrays, start)
                given = {"output_gradients": upstream[start : start + size], "unconnected_gradients": "zero"}
                found = tape.gradient(outputs, variables, **given)
                return start + size, *(
                    total + tf.convert_to_tensor(one) for total, one in zip(sums, found, strict=True)
                )

            sums = [tf.zeros(variable.shape, variable.dtype) for variable in variables]
            _, *sums = tf.while_loop(is_left, backward, (0, *sums), parallel_iterations=1)
            return [None] * len(arrays), sums

        return parts.concat(), gradient

    outputs = run(*arrays)
    outputs.set_shape((arrays[0].shape[0], *shape))
    return outputs


def _on_jax(model: keras.Model, ids: dict[str, Any], size: int) -> Any:
    import jax

    num_rows = next(iter(ids.values())).shape[0]
    num_parts = -(-num_rows // size)
    # Parts have equal numbers of rows: the last is filled up with copies of the first rows.
    rows = np.arange(num_parts * -(-num_rows // num_parts)).reshape(num_parts, -1) % num_rows
    trained = [variable.value for variable in model.trainable_variables]
    others = model.non_trainable_variables

    def part(state: Any, own: Any) -> Any:
        outputs, state = model.stateless_call(trained, state, {name: ids[name][own] for name in ids}, training=True)
        return state, outputs

    state, parts = jax.lax.scan(jax.checkpoint(part), [variable.value for variable in others], rows)
    for variable, value in zip(others, state, strict=True):
        variable.assign(value)
    return parts.reshape(-1, *parts.shape[2:])[:num_rows]


def _on_torch(model: keras.Model, ids: dict[str, Any], size: int) -> Any:
    from torch.utils.checkpoint import checkpoint

    seeds, parts = _seeds(model), []

    def part(rows: slice) -> Any:
        return model({name: values[rows] for name, values in ids.items()}, training=True)

    for start in range(0, len(next(iter(ids.values()))), size):
        contexts = functools.partial(_contexts, seeds, [keras.ops.copy(seed.value) for seed in seeds])
        parts.append(checkpoint(part, slice(start, start + size), use_reentrant=False, context_fn=contexts))
    return keras.ops.concatenate(parts)


def _contexts(seeds: list[Any], values: list[Any]) -> tuple[Any, Any]:
    """The contexts of torch's first computation and of the second, in which the seeds have these values again."""
    return contextlib.nullcontext(), _set_to(seeds, values)


@contextlib.contextmanager
def _set_to(variables: list[Any], values: list[Any]) -> Iterator[None]:
    """The context in which variables have other values."""
    before = [keras.ops.copy(variable.value) for variable in variables]
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    try:
        yield
    finally:
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)
