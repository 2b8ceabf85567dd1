"""Many texts through a model, those of about one length together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_bert_layers.tasks import _text_data as text_data


def predict_by_length(
    model: keras.Model, columns: Any, preprocess: Callable[[Any], Any], *, batch_size: int, verbose: Any
) -> np.ndarray:
    """What `model.predict` gives for texts, computed from the longest to the shortest and put back in order.

    Texts of about one length fill a batch with little padding. The longest come first, so that what memory cannot hold
    is known at once.

    Args:
        model: a Keras model with one output.
        columns: what `_text_data.as_columns` returns, at least one row.
        preprocess: makes the model's inputs of a batch of texts, in graph.
        batch_size: rows a step.
        verbose: as of `keras.Model.predict`: 0, 1, 2 or "auto".
    """
    sides = [np.asarray(side) for side in (columns if isinstance(columns, tuple) else (columns,))]
    lengths = np.sum([[len(text) for text in side] for side in sides], axis=0)
    order = np.argsort(-lengths, kind="stable")
    texts = tuple(side[order] for side in sides)
    batches = text_data.as_dataset(
        model.name, texts if len(texts) > 1 else texts[0], batch_size=batch_size, shuffle=False
    )
    # A dataset of pairs hands its pair to `map` as one argument, as it does a single text.
    found = keras.Model.predict(model, batches.map(preprocess).prefetch(2), verbose=verbose)
    restored = np.empty_like(found)
    restored[order] = found
    return restored
