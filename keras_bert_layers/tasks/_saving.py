"""The config of a task in a `.keras` file: its constructor arguments, and how it was compiled."""

from collections.abc import Mapping
from typing import Any

import keras

from keras_bert_layers._internal.checks import constructor_arguments
from keras_bert_layers._internal.keras_models import all_layers


def arguments(task: keras.Model) -> dict[str, Any]:
    """Every constructor argument of a task, serialized, from the attribute of its name.

    The fields of a `Masking` are arguments of their own, as the constructor takes them as keywords.
    """
    owner = next(base for base in type(task).__mro__ if "__init__" in vars(base))  # a subclass may have none
    found = constructor_arguments(owner, task)
    masking = found.pop("masking", None)
    fields = {} if masking is None else masking.to_dict()
    return {name: keras.saving.serialize_keras_object(value) for name, value in {**found, **fields}.items()}


def deserialized(config: dict[str, Any], custom_objects: Mapping[str, Any]) -> dict[str, Any]:
    """The constructor arguments of `arguments`, as objects."""
    return {
        key: keras.saving.deserialize_keras_object(value, custom_objects=custom_objects)
        if isinstance(value, dict)
        else value
        for key, value in config.items()
    }


def with_training_state(task: keras.Model, config: dict[str, Any]) -> dict[str, Any]:
    """A compile config with more facts: of which weights the optimizer has state yet, and which layers are frozen.

    `jit_compile` too, as it was given: Keras states what `"auto"` became, and another backend may read the file.
    They are stored beside the optimizer's own keys, where Keras ignores them: `keras.models.clone_model` hands this
    dictionary to a plain model.
    """
    if getattr(task, "optimizer", None) is not None:
        places = {id(weight): index for index, weight in enumerate(task.weights)}
        config["optimizer"] = {
            **keras.saving.serialize_keras_object(task.optimizer),
            "jit_compile": task.trainer.jit_compile,
            "has_state": task.optimizer.built,
            "trained_weights": [places.get(id(weight)) for weight in task.optimizer._trainable_variables],
            "frozen_layers": [index for index, layer in enumerate(all_layers(task)) if not layer.trainable],
        }
    return config


def compile_as_saved(task: keras.Model, config: dict[str, Any]) -> None:
    """Compiles a task by what `with_training_state` returned."""
    optimizer = config.get("optimizer") or {}
    frozen = set(optimizer.get("frozen_layers", ()))
    for index, layer in enumerate(all_layers(task)):
        if layer.trainable != (index not in frozen):  # setting the same value would unfreeze single weights, as of LoRA
            layer.trainable = index not in frozen  # outer layers come first, and set their inner ones
    options = keras.saving.deserialize_keras_object(config)
    if "jit_compile" in optimizer:
        options["jit_compile"] = optimizer["jit_compile"]
    elif keras.backend.backend() != "tensorflow":  # an older file, most often of TensorFlow, where it is off
        options["jit_compile"] = "auto"
    task.compile(**options)
    # Only if there is state to read: Keras warns of an optimizer that has slots and a file that has none.
    if optimizer.get("has_state", False):
        trained = optimizer.get("trained_weights", [None])  # older files have none
        weights = task.trainable_variables if None in trained else [task.weights[index] for index in trained]
        task.optimizer.build(weights)
