"""Graphs from ids to pooled and projected vectors."""

from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.config import ACTIVATIONS, BertConfig
from keras_bert_layers.layers import SequencePooling
from keras_bert_layers.layers.dense import activation_function
from keras_bert_layers.layers.initializers import truncated_normal
from keras_bert_layers.tasks.graphs.text_graph import text_graph

Pooling = str | Sequence[str]


def pooled_vectors(
    backbone: BertBackbone,
    pooling: Pooling,
    normalize: bool,
    projections: Sequence[Any] = (),
    *,
    finish: Callable[[Any], Any] = lambda vectors: vectors,
    adapter: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The graph of vectors, float32 `(batch, hidden_dim)`, or wider for several poolings.

    Args:
        backbone: a `BertBackbone`.
        pooling: the mode, or the modes, of a `SequencePooling`.
        normalize: whether vectors are scaled to Euclidean length 1.
        projections: layers between the two, which may change the width.
        finish: what is done with the vectors at last.
        adapter: the adapter of the backbone that is used; None for none.
        **options: `long_texts` and `part` of `text_graph`; windows are pooled before vectors are normalized.
    """
    pool = SequencePooling(pooling, dtype=backbone.dtype_policy, name="pooling")

    def encode(ids: dict[str, Any]) -> Any:
        hidden = backbone(ids, adapter=adapter) if adapter else backbone(ids)
        vectors = pool(hidden["sequence_output"], padding_mask=ids["padding_mask"])
        for projection in projections:
            vectors = projection(vectors)
        return vectors

    scale = scaling(normalize)
    return text_graph(backbone, encode, lambda vectors: finish(scale(vectors)), **options)


def scaling(normalize: bool) -> keras.layers.Layer:
    """A layer that makes vectors float32, and scales them to Euclidean length 1 if `normalize`."""
    if normalize:
        return keras.layers.UnitNormalization(axis=-1, dtype="float32", name="normalize")
    return keras.layers.Activation("linear", dtype="float32", name="as_float32")


def text_encoder(backbone: BertBackbone, *, part: str, **options: Any) -> tuple[keras.Model, dict[Any, keras.Model]]:
    """A model from ids to vectors, to be a part of another, and its own parts; arguments as for `pooled_vectors`."""
    graph = pooled_vectors(backbone, part=part, **options)
    encoder = keras.Model(graph["inputs"], graph["outputs"], name=f"{part}_encoder")
    if keras.backend.backend() == "tensorflow":
        encoder.jit_compile = False  # XLA would compile `predict` again for every length
    return encoder, graph["parts"]


def id_inputs(prefix: str, shape: tuple[None, ...]) -> dict[str, Any]:
    """Inputs like those of a backbone, for a model that takes them more than once; a shape without the batch."""
    names = ("token_ids", "segment_ids", "padding_mask")
    return {name: keras.Input(shape, dtype="int32", name=f"{prefix}_{name}") for name in names}


def as_given(value: object) -> Any:
    """A list as a tuple, and anything else as it is: Keras tracks lists."""
    return tuple(value) if isinstance(value, list) else value


def projection_layers(
    owner: str, widths: int | Sequence[int] | None, activations: str | Sequence[str], config: BertConfig
) -> list[keras.layers.Dense]:
    """Dense layers in a row, in float32 like the vectors; none without a width.

    Args:
        owner: the task's class, for errors.
        widths: of one layer, or of each.
        activations: of all layers, or of each.
        config: the backbone's.

    Raises:
        TypeError, ValueError: an argument out of range; not one activation for each layer.
    """
    given: Any = [] if widths is None else widths
    widths = list(given) if isinstance(given, list | tuple) else [given]
    names = [activations] * max(1, len(widths)) if isinstance(activations, str) else list(activations)
    for name in names:
        checks.one_of(owner, "projection_activation", name, ACTIVATIONS)
    if widths:
        rule = f"be one activation, or one for each of {len(widths)} layers"
        checks.length(owner, "projection_activation", names, len(widths), rule=rule, unit="activations")
    return [
        keras.layers.Dense(
            checks.positive_integer(owner, "projection_dim", width),
            activation=activation_function(owner, name),
            kernel_initializer=truncated_normal(config.initializer_range),
            dtype="float32",
            name=f"dense_projection_{index}" if index else "dense_projection",
        )
        for index, (width, name) in enumerate(zip(widths, names, strict=False))
    ]
