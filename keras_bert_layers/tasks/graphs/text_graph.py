"""Graphs over the windows of long texts: an axis of windows in the ids, and one vector per text after the encoder."""

from collections.abc import Callable
from typing import Any

import keras

from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import FlattenChoices, WindowPooling
from keras_bert_layers.preprocessing.preprocessors.long_texts import Windows

#: The parts of a model over windows: ids `(windows, sequence)` -> features, and features of texts -> outputs.
ENCODED, POOLED = "encoded", "pooled"


def text_graph(
    backbone: BertBackbone,
    encode: Callable[[dict[str, Any]], Any],
    finish: Callable[[Any], Any] = lambda features: features,
    *,
    long_texts: Any,
    part: str | None = None,
) -> dict[str, Any]:
    """The graph `finish(encode(ids))`; under `Windows`, with the features of a text's windows pooled between the two.

    Args:
        backbone: whose inputs the ids are.
        encode: ids to features `(batch, features)`.
        finish: features to outputs.
        long_texts: the rule for long texts.
        part: the name of the part of the task that this graph is; None for all of it.

    Returns:
        The arguments of `Task`: `inputs`, ids `(batch, sequence)`, or `(batch, windows, sequence)` under `Windows`;
        `outputs`; and `parts`, under `Windows` two models that share the layers of the graph, `(part, ENCODED)` and
        `(part, POOLED)`: together they compute any number of windows, a few at a time.
    """
    if not isinstance(long_texts, Windows):
        return {"inputs": backbone.input, "outputs": finish(encode(backbone.input)), "parts": {}}
    pool = WindowPooling(long_texts.pooling or "mean", dtype="float32", name="window_pooling")
    flatten = FlattenChoices()
    inputs = {name: keras.Input((None, None), dtype="int32", name=name) for name in backbone.input}
    features = encode({name: flatten(ids) for name, ids in inputs.items()})  # [B * windows, F]
    # A window without a single token is absent.
    outputs = finish(pool(features, keras.ops.max(inputs["padding_mask"], axis=-1)))
    given = keras.Input((None, features.shape[-1]), name="features")
    mask = keras.Input((None,), dtype="int32", name="window_mask")
    head = keras.Model({"features": given, "window_mask": mask}, finish(pool(given, mask)))
    parts = {(part, ENCODED): keras.Model(backbone.input, encode(backbone.input)), (part, POOLED): head}
    for model in parts.values() if keras.backend.backend() == "tensorflow" else ():
        model.jit_compile = False  # XLA would compile `predict` again for every length
    return {"inputs": inputs, "outputs": outputs, "parts": parts}
