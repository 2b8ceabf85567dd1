"""Graphs from ids to pooled vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import SequencePooling

Pooling = str | Sequence[str]


def pooled_vectors(backbone: BertBackbone, pooling: Pooling, normalize: bool, projections: Sequence[Any] = ()) -> Any:
    """The symbolic vectors of the backbone's own inputs, float32 `(batch, hidden_dim)`, or wider for several poolings.

    Args:
        backbone: a `BertBackbone`.
        pooling: the mode, or the modes, of a `SequencePooling`.
        normalize: whether vectors are scaled to Euclidean length 1.
        projections: layers between the two, which may change the width.
    """
    inputs = backbone.input
    pool = SequencePooling(pooling, dtype=backbone.dtype_policy, name="pooling")
    vectors = pool(backbone(inputs)["sequence_output"], padding_mask=inputs["padding_mask"])
    for projection in projections:
        vectors = projection(vectors)
    if normalize:
        return keras.layers.UnitNormalization(axis=-1, dtype="float32", name="normalize")(vectors)
    return keras.layers.Activation("linear", dtype="float32", name="as_float32")(vectors)


def text_encoder(backbone: BertBackbone, pooling: Pooling, normalize: bool, *, name: str) -> keras.Model:
    """A model from ids to vectors, to be a part of another; arguments as for `pooled_vectors`."""
    encoder = keras.Model(backbone.input, pooled_vectors(backbone, pooling, normalize), name=name)
    if keras.backend.backend() == "tensorflow":
        encoder.jit_compile = False  # XLA would compile `predict` again for every length
    return encoder


def id_inputs(prefix: str) -> dict[str, Any]:
    """Inputs like those of a backbone, for a model that takes them more than once."""
    names = ("token_ids", "segment_ids", "padding_mask")
    return {name: keras.Input((None,), dtype="int32", name=f"{prefix}_{name}") for name in names}
