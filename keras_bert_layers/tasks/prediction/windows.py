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
from keras_bert_layers.tasks.prediction.length_batches import default_max_tokens, plan

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
    rows: dict[str, tf.Tensor],
    *,
    sizes: tuple[tuple[Any, tuple[int | None, ...]], ...],
    width: Callable[[tf.Tensor], tf.Tensor | int] | None = None,
) -> tuple[tf.Tensor, ...]:
    """The outputs of a function for rows, computed in parts of similar length, which fit into the processor's cache.

    Args:
        function: takes rows and returns tensors, rows first.
        rows: tensors, rows first, among them `"padding_mask"` `[R, ..., S]`.
        sizes: the dtype of each output of the function, and its axes after the rows.
        width: maps the length of a part's longest row to the width that the part is cut to; without it, tensors of any
            axes are not cut.

    Returns:
        The outputs for all rows, in their order.
    """
    mask = rows["padding_mask"]
    length_of = tf.where(mask > 0, tf.range(1, tf.shape(mask)[-1] + 1), 1)
    lengths = tf.reduce_max(tf.reshape(length_of, (tf.shape(mask)[0], -1)), axis=1)  # [R]
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    most = default_max_tokens() // tf.maximum(tf.reduce_prod(tf.shape(mask)[1:-1]), 1)
    results = tuple(
        tf.TensorArray(dtype, 1, dynamic_size=True, element_shape=(None, *axes), infer_shape=False)
        for dtype, axes in sizes
    )

    def one_part(part: tf.Tensor, begin: tf.Tensor, results: tuple[tf.TensorArray, ...]) -> tuple[Any, ...]:
        longest = tf.gather(lengths, order[begin : begin + 1])  # of one row, or of none
        needed = tf.reduce_sum(longest) if width is None else width(longest)
        chosen = order[begin : begin + tf.maximum(most // tf.maximum(needed, 1), 1)]
        some = {name: tf.gather(tensor, chosen) for name, tensor in rows.items()}
        if width is not None:
            some = {name: tensor[:, :needed] for name, tensor in some.items()}
        written = (result.write(part, output) for result, output in zip(results, function(some), strict=True))
        return part + 1, begin + tf.size(chosen), tuple(written)

    begin = part = tf.constant(0)
    *_, results = tf.while_loop(
        lambda part, begin, _: (part == 0) | (begin < tf.size(order)),
        one_part,
        (part, begin, results),
        parallel_iterations=1,
    )
    position = tf.math.invert_permutation(order)
    return tuple(tf.gather(result.concat(), position) for result in results)


def outputs_in_parts(run: Callable[[dict[str, tf.Tensor]], Any], ids: dict[str, tf.Tensor], outputs: Outputs) -> Any:
    """The outputs of a model for any number of rows, computed in parts; in graph, where padding costs nothing.

    Args:
        run: the model; returns a tensor, or a dictionary of them.
        ids: its inputs, rows first.
        outputs: its symbolic outputs, `keras.KerasTensor`.
    """
    sizes = tuple((output.dtype, tuple(output.shape[1:])) for output in tf.nest.flatten(outputs))
    found = in_parts(lambda part: tuple(tf.nest.flatten(run(part))), ids, sizes=sizes)
    return tf.nest.pack_sequence_as(outputs, found)


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
