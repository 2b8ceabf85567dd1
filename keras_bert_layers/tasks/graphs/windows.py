"""Graphs over the windows of long texts: an axis of windows in the ids, and one vector per text after the encoder."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras

from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import FlattenChoices, WindowPooling
from keras_bert_layers.preprocessing.preprocessors.long_texts import Windows

#: The parts of a model over windows: ids `(windows, sequence)` -> features, and features of texts -> outputs.
ENCODED, POOLED = "encoded", "pooled"


class TextGraph(NamedTuple):
    """The graph of a model that gives one output per text.

    Attributes:
        inputs: the symbolic ids, `(batch, sequence)`, or `(batch, windows, sequence)` under `Windows`.
        outputs: the symbolic outputs.
        parts: under `Windows`, the models `ENCODED` and `POOLED`, which share the layers of the graph: together they
            compute any number of windows, a few at a time. The keys are `(part, ENCODED)` and `(part, POOLED)`.
    """

    inputs: dict[str, Any]
    outputs: Any
    parts: dict[Any, keras.Model]


def text_graph(
    backbone: BertBackbone,
    long_texts: Any,
    encode: Callable[[dict[str, Any]], Any],
    finish: Callable[[Any], Any] = lambda features: features,
    *,
    part: str | None = None,
) -> TextGraph:
    """The graph `finish(encode(ids))`; under `Windows`, with the features of a text's windows pooled between the two.

    Args:
        backbone: whose inputs the ids are.
        long_texts: the rule for long texts.
        encode: ids to features `(batch, features)`.
        finish: features to outputs.
        part: the name of the part of the task that this graph is; None for all of it.
    """
    if not isinstance(long_texts, Windows):
        return TextGraph(backbone.input, finish(encode(backbone.input)), {})
    pool, flatten = WindowPooling(long_texts.pooling, dtype="float32", name="window_pooling"), FlattenChoices()
    inputs = {name: keras.Input((None, None), dtype="int32", name=name) for name in backbone.input}
    features = encode({name: flatten(ids) for name, ids in inputs.items()})  # [B * windows, F]
    # A window without a single token is absent.
    outputs = finish(pool(features, keras.ops.max(inputs["padding_mask"], axis=-1)))
    of_texts = {
        "features": keras.Input((None, features.shape[-1]), name="features"),
        "window_mask": keras.Input((None,), dtype="int32", name="window_mask"),
    }
    parts = {
        (part, ENCODED): keras.Model(backbone.input, encode(backbone.input)),
        (part, POOLED): keras.Model(of_texts, finish(pool(*of_texts.values()))),
    }
    for model in parts.values() if keras.backend.backend() == "tensorflow" else ():
        model.jit_compile = False  # XLA would compile `predict` again for every length
    return TextGraph(inputs, outputs, parts)
