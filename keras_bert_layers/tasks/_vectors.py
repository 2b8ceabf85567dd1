"""What the encoders have in common: one vector a text, pooled over its tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np

from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import SequencePooling
from keras_bert_layers.tasks import _text_data as text_data


def pooled_vectors(backbone: BertBackbone, pooling: str, normalize: bool) -> Any:
    """The symbolic vectors of the backbone's own inputs, float32 `(batch, hidden_dim)`.

    Args:
        backbone: a `BertBackbone`.
        pooling: `"mean"`, `"cls"` or `"max"` over the real tokens.
        normalize: whether vectors are scaled to Euclidean length 1.
    """
    inputs = backbone.input
    pool = SequencePooling(pooling, dtype=backbone.dtype_policy, name="pooling")
    vectors = pool(backbone(inputs)["sequence_output"], padding_mask=inputs["padding_mask"])
    if normalize:
        return keras.layers.UnitNormalization(axis=-1, dtype="float32", name="normalize")(vectors)
    return keras.layers.Activation("linear", dtype="float32", name="as_float32")(vectors)


def text_encoder(backbone: BertBackbone, pooling: str, normalize: bool, *, name: str) -> keras.Model:
    """Ids to vectors as a model of its own, to be a part of another; arguments as for `pooled_vectors`."""
    encoder = keras.Model(backbone.input, pooled_vectors(backbone, pooling, normalize), name=name)
    if keras.backend.backend() == "tensorflow":
        encoder.jit_compile = False  # XLA would compile `predict` again for every length
    return encoder


def id_inputs(prefix: str) -> dict[str, Any]:
    """Inputs of a backbone's kind, for a model that takes them more than once."""
    names = ("token_ids", "segment_ids", "padding_mask")
    return {name: keras.Input((None,), dtype="int32", name=f"{prefix}_{name}") for name in names}


def without_poolers(weights: Iterable[Any], *backbones: BertBackbone) -> list[Any]:
    """The weights but those of the backbones' poolers, which no vector passes through."""
    unused = {id(weight) for backbone in backbones for weight in backbone.get_layer("pooler").weights}
    return [weight for weight in weights if id(weight) not in unused]


def predict_by_length(
    model: keras.Model, columns: Any, preprocess: Callable[..., Any], *, batch_size: int, verbose: Any
) -> np.ndarray:
    """What `model.predict` gives for texts, computed from the longest to the shortest and put back in order.

    Texts of about one length fill a batch with little padding; the longest come first, so that what memory cannot hold
    is known at once.

    Args:
        model: a Keras model with one output.
        columns: what `as_columns` returns, at least one row.
        preprocess: makes the model's inputs of a batch, in graph.
        batch_size: rows a step.
        verbose: Keras's own progress bar: 0, 1, 2 or "auto".
    """
    sides = columns if isinstance(columns, tuple) else (columns,)
    lengths = np.sum([[len(text) for text in np.asarray(side)] for side in sides], axis=0)
    order = np.argsort(-lengths, kind="stable")
    in_order = tuple(np.asarray(side)[order] for side in sides)
    batches = text_data.as_dataset(
        model.name, in_order if isinstance(columns, tuple) else in_order[0], batch_size=batch_size, shuffle=False
    )
    found = model.predict(batches.map(lambda *parts: preprocess(parts[0])).prefetch(2), verbose=verbose)
    restored = np.empty_like(found)
    restored[order] = found
    return restored
