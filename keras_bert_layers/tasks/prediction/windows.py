"""Runs a model over texts of any length: the windows a few at a time, and then their pooled features."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Outputs
from keras_bert_layers.config import IDS
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor, padded_width
from keras_bert_layers.preprocessing.preprocessors.long_texts import WINDOW_ROWS, by_text
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.graphs.text_graph import ENCODED, POOLED
from keras_bert_layers.tasks.prediction.length_batches import plan

# With more windows at once, the attention scores of BERT-base over 384 tokens take more than a few 100 MB.
WINDOWS_PER_PART = 32
# The features of as many windows of BERT-base take 12 MB.
_WINDOWS_POOLED_AT_ONCE = 4096


def outputs_of_windows(
    run: Callable[..., Any],
    step: Callable[..., Any],
    ids: dict[str, Any],
    preprocessor: TextLayer | None,
    part: Hashable,
    **options: Any,
) -> np.ndarray:
    """The outputs of texts, from all of their windows; if all texts are short, they are computed as without windows.

    Args:
        run: as `Inputs.outputs` has it.
        step: `Predictor.step`.
        ids: what a call of `Windows` returned.
        preprocessor: made the ids.
        part: the part of the model that computes the outputs.
        **options: others of `run`.
    """
    counts, ids = np.bincount(ids[WINDOW_ROWS]), {name: ids[name] for name in IDS}
    if counts.max(initial=1) == 1:
        return run(ids, preprocessor, part=part, finish=_as_texts, **options)
    features = run(ids, preprocessor, part=(part, ENCODED), **options).astype(np.float32)
    begins, pool = np.cumsum(counts) - counts, step((part, POOLED))
    chosen = list(plan(counts, width=int, max_rows=None, max_tokens=_WINDOWS_POOLED_AT_ONCE))
    found = []
    for texts in chosen:
        window = np.arange(counts[texts[0]])  # the text with the most windows is the first
        mask = window < counts[texts, None]
        places = np.where(mask, begins[texts, None] + window, 0)  # [texts, windows]
        outputs = pool({"features": features[places], "window_mask": mask.astype(np.int32)})
        found.append(keras.ops.convert_to_numpy(outputs))
    return np.concatenate(found)[np.argsort(np.concatenate(chosen))]


def _as_texts(ids: dict[str, Any]) -> dict[str, Any]:
    """Windows as texts of one window each, `(texts, 1, sequence)`."""
    return {name: ids[name][:, None] for name in IDS}


def run_windows(run: Callable[..., tf.Tensor], ids: dict[str, tf.Tensor], part: str | None) -> tf.Tensor:
    """`outputs_of_windows` in graph; if all texts of a batch are short, they are computed at once as without windows.

    Args:
        run: `Predictor.run`.
        ids: what a call of `Windows` returned.
        part: the part of the model that computes the outputs.
    """
    windows, rows = {name: ids[name] for name in IDS}, ids[WINDOW_ROWS]

    def encoded(some: dict[str, tf.Tensor]) -> tuple[tf.Tensor]:
        return (tf.cast(run(some, (part, ENCODED)), tf.float32),)

    def pooled() -> tf.Tensor:
        (features,) = in_parts(encoded, windows, width=tf.reduce_max, sizes=((tf.float32, (None,)),))
        flat = {"features": features, "window_mask": tf.ones_like(rows), WINDOW_ROWS: rows}
        return run(by_text(flat), (part, POOLED))

    num_texts = tf.reduce_max(tf.concat([rows, [-1]], 0)) + 1
    return tf.cond(tf.size(rows) == num_texts, lambda: run(_as_texts(windows), part), pooled)


def in_parts(
    function: Callable[[dict[str, tf.Tensor]], tuple[tf.Tensor, ...]],
    windows: dict[str, tf.Tensor],
    *,
    width: Callable[[tf.Tensor], tf.Tensor | int],
    sizes: tuple[tuple[Any, tuple[int | None, ...]], ...],
) -> tuple[tf.Tensor, ...]:
    """The outputs of a function for windows, computed in parts of similar length.

    Args:
        function: takes windows and returns tensors, windows first.
        windows: tensors `[W, S]`, among them `"padding_mask"`.
        width: maps the lengths of some windows to the width that they are padded to.
        sizes: the dtype of each output of the function, and its axes after the windows.

    Returns:
        The outputs for all windows, in their order.
    """
    lengths = tf.reduce_sum(windows["padding_mask"], axis=1)  # [W]
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    num_parts = tf.maximum((tf.size(order) + WINDOWS_PER_PART - 1) // WINDOWS_PER_PART, 1)
    results = tuple(
        tf.TensorArray(dtype, num_parts, element_shape=(None, *axes), infer_shape=False) for dtype, axes in sizes
    )

    def one_part(part: tf.Tensor, results: tuple[tf.TensorArray, ...]) -> tuple[tf.Tensor, tuple[tf.TensorArray, ...]]:
        chosen = order[part * WINDOWS_PER_PART : (part + 1) * WINDOWS_PER_PART]
        needed = width(tf.gather(lengths, chosen))
        outputs = function({name: tf.gather(tensor, chosen)[:, :needed] for name, tensor in windows.items()})
        return part + 1, tuple(result.write(part, output) for result, output in zip(results, outputs, strict=True))

    _, results = tf.while_loop(
        lambda part, _: part < num_parts, one_part, (tf.constant(0), results), parallel_iterations=1
    )
    position = tf.math.invert_permutation(order)
    return tuple(tf.gather(result.concat(), position) for result in results)


def states_of_windows(
    run: Callable[[dict[str, tf.Tensor]], Any],
    windows: dict[str, tf.Tensor],
    preprocessor: BertPreprocessor,
    outputs: Outputs,
) -> Any:
    """The outputs of a model for any number of windows, float32 `(windows, ...)`.

    Args:
        run: the model; returns a tensor, or a dictionary of them.
        windows: its inputs.
        preprocessor: made them.
        outputs: its symbolic outputs, `keras.KerasTensor`; None in a shape, after the first, is the axis of tokens.
    """
    sequence = tf.shape(windows["token_ids"])[1]
    sizes = tuple((tf.float32, tuple(output.shape[1:])) for output in tf.nest.flatten(outputs))

    def padded(part: dict[str, tf.Tensor]) -> tuple[tf.Tensor, ...]:
        missing = sequence - tf.shape(part["token_ids"])[1]
        paddings = [[[0, 0], *([0, missing if size is None else 0] for size in axes)] for _, axes in sizes]
        return tuple(map(tf.pad, tf.nest.flatten(run(part)), paddings))

    width = functools.partial(padded_width, padding=preprocessor.padding, max_length=preprocessor.max_length)
    return tf.nest.pack_sequence_as(outputs, in_parts(padded, windows, width=width, sizes=sizes))
