"""Runs a model over texts of any length: the windows a few at a time, and then their pooled features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.preprocessors.long_texts import WINDOW_ROWS, by_text
from keras_bert_layers.tasks.graphs.windows import ENCODED, POOLED
from keras_bert_layers.tasks.prediction.length_batches import IDS, plan
from keras_bert_layers.tasks.prediction.parts import in_parts

# As many features as BERT-base has take 12 MB.
_WINDOWS_POOLED_AT_ONCE = 4096


def outputs_of_windows(
    run: Callable[..., Any],
    step: Callable[[Any], Callable[..., Any]],
    ids: dict[str, Any],
    preprocessor: Any,
    *,
    part: str | None = None,
    share: float = 1.0,
    **options: Any,
) -> np.ndarray:
    """The outputs of texts, from all of their windows; a text of one window is computed as without windows.

    Args:
        run: as `Inputs.outputs` has it.
        step: `Predictor.step`.
        ids: what a call of `Windows` returned.
        preprocessor: made the ids.
        part: the part of the model that computes the outputs.
        share: as in `LengthBatches.run`.
        **options: others of `run`.
    """
    rows = np.asarray(ids[WINDOW_ROWS])
    counts = np.bincount(rows)
    is_long = counts[rows] > 1  # [windows]
    computed = []
    for chosen, of_part, finish in ((~is_long, part, _as_texts), (is_long, (part, ENCODED), None)):
        if chosen.any() or not computed:
            some = {name: np.asarray(ids[name])[chosen] for name in IDS}
            options |= {"part": of_part, "finish": finish, "share": share * chosen.mean()}
            computed.append(run(some, preprocessor, **options) if chosen.any() else None)
    if not is_long.any():
        return computed[0]
    features, sizes = computed[1].astype(np.float32), counts[counts > 1]
    begins, pool = np.cumsum(sizes) - sizes, step((part, POOLED))
    chosen, pooled = [], []
    for texts in plan(sizes, width=int, max_rows=None, max_tokens=_WINDOWS_POOLED_AT_ONCE):
        index = np.arange(sizes[texts].max())
        mask = index < sizes[texts][:, None]
        places = np.where(mask, begins[texts][:, None] + index, 0)  # [texts, windows]
        pooled.append(np.asarray(pool({"features": features[places], "window_mask": mask.astype(np.int32)})))
        chosen.append(texts)
    outputs = np.concatenate(pooled)[np.argsort(np.concatenate(chosen))]
    found = np.empty((len(counts), *outputs.shape[1:]), outputs.dtype)
    found[counts > 1] = outputs
    if computed[0] is not None:
        found[counts == 1] = computed[0]
    return found


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
    windows = {name: ids[name] for name in IDS}
    rows = ids[WINDOW_ROWS]

    def encoded(some: dict[str, tf.Tensor]) -> tuple[tf.Tensor]:
        return (tf.cast(run(some, (part, ENCODED)), tf.float32),)

    def pooled() -> tf.Tensor:
        (features,) = in_parts(encoded, windows, width=tf.reduce_max, sizes=((tf.float32, (None,)),))
        texts = by_text({"features": features, "window_mask": tf.ones_like(rows), WINDOW_ROWS: rows}, 0)
        return run(texts, (part, POOLED))

    num_texts = tf.reduce_max(tf.concat([rows, [-1]], 0)) + 1
    return tf.cond(tf.size(rows) == num_texts, lambda: run(_as_texts(windows), part), pooled)
