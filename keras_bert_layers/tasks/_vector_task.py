"""What the encoders of single texts have in common: one vector a text, pooled over its tokens."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import SequencePooling
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._text_task import TextTask


class VectorTask(TextTask):
    """A task whose model gives vectors, and which learns from texts, pairs and triplets."""

    output_name = "embedding"
    most_texts = 3
    reads_pooled_output = False

    def _no_vectors(self) -> np.ndarray:
        """The vectors of no texts."""
        return np.zeros((0, self._vector_dim()), "float32")

    def _vector_dim(self) -> int:
        """The vectors' width."""
        return self.backbone.config.hidden_dim

    def _refuse_negatives(self, x: Any) -> None:
        """Refuses, where nothing is learnt, more than two texts a row."""
        num_sides = text_data.num_sides(x)
        if num_sides > 2:
            rule = "be texts or pairs of texts"
            raise ValueError(checks.message(type(self).__name__, "x", rule, f"a tuple of {num_sides}"))


def pooled_vectors(backbone: BertBackbone, pooling: str, normalize: bool, projection: Any = None) -> Any:
    """The symbolic vectors of the backbone's own inputs, float32 `(batch, hidden_dim)`.

    Args:
        backbone: a `BertBackbone`.
        pooling: `"mean"`, `"cls"` or `"max"` over the real tokens.
        normalize: whether vectors are scaled to Euclidean length 1.
        projection: a layer between the two, which may change the width; None for none.
    """
    inputs = backbone.input
    pool = SequencePooling(pooling, dtype=backbone.dtype_policy, name="pooling")
    vectors = pool(backbone(inputs)["sequence_output"], padding_mask=inputs["padding_mask"])
    if projection is not None:
        vectors = projection(vectors)
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
