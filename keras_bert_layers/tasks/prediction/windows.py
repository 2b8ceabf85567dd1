"""Runs a model over texts of any length: the windows a few at a time, and then their pooled features."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.preprocessors.long_texts import WINDOW_ROWS, by_text
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.graphs.windows import ENCODED, POOLED
from keras_bert_layers.tasks.prediction.length_batches import IDS, plan
from keras_bert_layers.tasks.prediction.parts import in_parts

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
