"""Layers as arguments of other layers: `part_of` reads one, `serialized` writes it into a config."""

from typing import Any

import keras

from keras_bert_layers._internal import checks


def part_of(owner: str, argument: str, value: Any, kind: type[Any]) -> Any:
    """None, or a part of that kind, also from its serialized form; TypeError otherwise."""
    if isinstance(value, dict):
        value = keras.saving.deserialize_keras_object(value)
    return None if value is None else checks.instance(owner, argument, value, kind)


def serialized(part: Any) -> Any:
    """The serialized form of a part, for configs, not built, as the layer that has it builds it; None for None."""
    if part is None:
        return None
    return {key: value for key, value in keras.saving.serialize_keras_object(part).items() if key != "build_config"}
