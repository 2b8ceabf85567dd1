"""Integrated gradients of a task's logits along the straight path between the embeddings of two rows of ids.

Axes: R rows, S sequence, H hidden, P points of the path, N rows at points, K logits that add up to the target.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_layers._internal.custom_gradients import freed_with
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import BertEmbedding
from keras_bert_layers.tasks.prediction.length_batches import IDS, plan

#: How many points the first quadrature has.
FIRST_STEPS = 32
# Tokens of all rows and points that are computed at once: gradients take some 60 kB a token and layer of BERT-base.
TOKENS_AT_ONCE = 2048

BACKENDS = ("tensorflow", "jax", "torch")


def quadrature(steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The points of Gauss-Legendre quadrature on [0, 1], between the ends 0 and 1.

    Returns:
        Float32 `(steps + 2,)` each: the points; their weights in the integral, 0 for the ends; and their weights in the
        difference of the ends, -1 and 1, and 0 for the others.
    """
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    points = np.concatenate([[0.0], (nodes + 1) / 2, [1.0]])
    ends = np.zeros(steps + 2)
    ends[[0, -1]] = -1, 1
    return points.astype(np.float32), np.pad(weights / 2, 1).astype(np.float32), ends.astype(np.float32)


def path_gradients(task: Any, ids: dict[str, Any], baseline_ids: Any, targets: Any, shares: Any) -> tuple[Any, Any]:
    """The gradients of logits at points of paths, as sums over the embeddings' width; in graph or eagerly.

    Args:
        task: the task.
        ids: the model's inputs, int32 `[N, S]` each.
        baseline_ids: int32 `[N, S]`, the token ids at the start of the path.
        targets: int32 `[N, K]`: for each output of the task, in the order of their names, the index of a logit in the
            row's flattened logits. The target is the sum of these.
        shares: float32 `[N]`, how far each row is on its path, 0 at the baseline and 1 at `ids`.

    Returns:
        Float32 `[N, S]`, the sum over the width of gradient times (input - baseline), 0 at padding; and `[N]`, the
        targets.
    """

    def target_at(offset: Any) -> tuple[Any, tuple[Any, Any]]:
        found = []

        def embed(layer: BertEmbedding, token_ids: Any, segment_ids: Any, padding_mask: Any) -> Any:
            # The position of [PAD] depends on its id in RoBERTa; positions are those of the text here.
            positions = layer._counted_positions(token_ids, None) if layer.position_offset else None
            end, start = (
                ops.cast(layer(chosen, segment_ids, positions, padding_mask), "float32")
                for chosen in (token_ids, baseline_ids)
            )
            found.append(end - start)
            return start + shares[:, None, None] * found[0] + offset  # [N, S, H]

        outputs = keras.tree.flatten(_outputs(task, ids, embed))
        rows = [ops.reshape(output, (ops.shape(targets)[0], -1)) for output in outputs]
        chosen = [ops.take_along_axis(row, targets[:, i : i + 1], axis=1)[:, 0] for i, row in enumerate(rows)]
        target = functools.reduce(ops.add, chosen)  # [N]
        return ops.sum(target), (target, found[0])

    with freed_with(task):
        offset = ops.zeros((*ops.shape(ids["token_ids"]), task.backbone.config.hidden_dim))
        gradient, (target, change) = _with_gradient(target_at, offset)
        products = ops.sum(gradient * change, axis=-1)
        return ops.where(ids["padding_mask"] > 0, products, 0.0), target


def _outputs(model: Any, inputs: Any, embed: Callable[..., Any]) -> Any:
    """The outputs of a functional model with the embedding layer's call replaced, in the backbone too."""

    def operation(layer: Any) -> Any:
        if isinstance(layer, BertBackbone):
            return lambda inputs, **_: _outputs(layer, inputs, embed)
        return functools.partial(embed, layer) if isinstance(layer, BertEmbedding) else layer

    return model._run_through_graph(inputs, operation_fn=operation)


def _with_gradient(function: Callable[[Any], tuple[Any, Any]], point: Any) -> tuple[Any, Any]:
    """The gradient of a function's first result at a point, and its second result."""
    if keras.backend.backend() == "tensorflow":
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(point)
            value, other = function(point)
        return tape.gradient(value, point), other
    if keras.backend.backend() == "jax":
        import jax

        return jax.grad(function, has_aux=True)(point)
    import torch

    value, other = function(point.requires_grad_())
    return torch.autograd.grad(value, point)[0], other


def integrate(
    task: Any, ids: dict[str, np.ndarray], baseline_ids: np.ndarray, targets: np.ndarray, *, tolerance: float, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integrated gradients of rows, each with as many points as it needs.

    Args:
        task: the task.
        ids: the model's inputs, int32 `[R, S]` each.
        baseline_ids: int32 `[R, S]`.
        targets: int32 `[R, K]`, as in `path_gradients`.
        tolerance: the error that is accepted, a share of the difference, or of 1 if that is smaller.
        most: the most points.

    Returns:
        The scores, float64 `[R, S]`; the differences of the target between the ends, float64 `[R]`; and the numbers of
        points, int `[R]`.
    """
    spec = tf.TensorSpec([None, None], tf.int32)
    signature = ({name: spec for name in IDS}, spec, spec, tf.TensorSpec([None], tf.float32))
    run = task._predictor.traced_once(types.MethodType(path_gradients, task), signature)
    num_rows, steps = len(baseline_ids), min(FIRST_STEPS, most)
    lengths = ids["padding_mask"].sum(axis=1)
    scores, differences = np.zeros(baseline_ids.shape), np.zeros(num_rows)
    counts, open_rows = np.zeros(num_rows, int), np.arange(num_rows)
    while len(open_rows):
        for rows in plan(lengths[open_rows], width=int, max_rows=None, max_tokens=TOKENS_AT_ONCE // (steps + 2)):
            chosen = open_rows[rows]
            width = lengths[chosen].max()
            given = {name: values[chosen, :width] for name, values in ids.items()}
            found = _integral(run, given, baseline_ids[chosen, :width], targets[chosen], steps)
            scores[chosen, :width], differences[chosen] = found
            counts[chosen] = steps
        errors = np.abs(scores.sum(axis=1) - differences)
        if steps == most:
            break
        open_rows = np.flatnonzero(errors > tolerance * np.maximum(1, np.abs(differences)))
        steps = min(2 * steps, most)
    return scores, differences, counts


def _integral(
    run: Callable[..., Any], ids: dict[str, np.ndarray], baseline_ids: np.ndarray, targets: np.ndarray, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The scores `[R, S]` and the differences `[R]` of some rows, a few points at a time."""
    scores, difference = 0.0, 0.0
    path = np.stack(quadrature(steps), axis=1)  # [P, 3]
    at_once = max(1, TOKENS_AT_ONCE // baseline_ids.size)
    for start in range(0, len(path), at_once):
        points, weights, ends = path[start : start + at_once].T
        repeat = functools.partial(np.tile, reps=(len(points), 1))
        inputs = {name: ops.convert_to_tensor(repeat(values)) for name, values in ids.items()}
        others = (repeat(baseline_ids), repeat(targets), np.repeat(points, len(targets)))
        products, logits = map(ops.convert_to_numpy, run(inputs, *map(ops.convert_to_tensor, others)))
        scores += np.tensordot(weights, products.reshape(-1, *baseline_ids.shape), 1).astype(np.float64)
        difference += ends @ logits.reshape(-1, len(targets))
    return scores, difference
