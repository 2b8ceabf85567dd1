"""Graphs from ids to chosen hidden states of a backbone, combined into one vector per token or text."""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import ScalarMix, SequencePooling

COMBINATIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "concat": lambda states: ops.concatenate(states, axis=-1) if len(states) > 1 else states[0],
    "sum": lambda states: functools.reduce(operator.add, states),
    "mean": lambda states: functools.reduce(operator.add, states) / len(states),
    "stack": lambda states: ops.stack(states, axis=-2),
}


def checked_layers(owner: str, layers: Any, num_layers: int) -> tuple[int, ...]:
    """Indices into the `num_layers + 1` hidden states, none negative, of an index, a sequence of them, or "all"."""
    if isinstance(layers, str) and layers == "all":
        return tuple(range(num_layers + 1))
    given = layers if isinstance(layers, list | tuple | range) else [layers]
    rule = f'be "all", or indices from {-num_layers - 1} to {num_layers}, with 0 for the output of the embedding'
    if not given or any(isinstance(index, bool) or not isinstance(index, int) for index in given):
        raise TypeError(checks.message(owner, "layers", rule, layers))
    if not all(-num_layers - 1 <= index <= num_layers for index in given):
        raise ValueError(checks.message(owner, "layers", rule, layers))
    return tuple(index % (num_layers + 1) for index in given)


def hidden_states(backbone: BertBackbone) -> list[Any]:
    """The symbolic hidden states of a backbone, float `(batch, sequence, hidden_dim)`, embedding output first."""
    return list(backbone.hidden_states)


def feature_model(
    backbone: BertBackbone, layers: Sequence[int], combine: str | ScalarMix, pooling: str | None = None
) -> keras.Model:
    """A model from ids to features, float32; it shares the backbone's layers and runs none above the highest chosen.

    Args:
        backbone: a `BertBackbone`.
        layers: indices of hidden states, as `checked_layers` returns them.
        combine: a key of `COMBINATIONS`, or a layer that adds up stacked states.
        pooling: the mode of a `SequencePooling` for one vector per text; None for one vector per token.
    """
    states = hidden_states(backbone)
    chosen = [states[index] for index in layers]
    if pooling is not None:  # before states are combined, while padding is still left out
        pool = SequencePooling(pooling, dtype=backbone.dtype_policy)
        chosen = [pool(state, padding_mask=backbone.input["padding_mask"]) for state in chosen]
    as_float32 = keras.layers.Activation("linear", dtype="float32")
    chosen = [as_float32(state) for state in chosen]
    features = COMBINATIONS[combine](chosen) if isinstance(combine, str) else combine(ops.stack(chosen, axis=-2))
    model = keras.Model(backbone.input, features)
    if keras.backend.backend() == "tensorflow":
        model.jit_compile = False  # XLA would compile `predict` again for every length
    return model
