"""Keras models: cloned, rebuilt with another config, quantized, and with attributes that Keras does not track."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import keras
import numpy as np

from keras_bert_layers._internal import checks, read_outputs
from keras_bert_layers._internal.types import Ids


def all_layers(model: keras.Model) -> list[Any]:
    """A model or layer and all layers in it, as Keras counts and trains them."""
    return list(model._flatten_layers())


def run_through_graph(model: keras.Model, inputs: Ids, **functions: Any) -> Any:
    """Keras's method of functional models, to be `_run_through_graph` of a subclass with a constructor of its own.

    `keras.models.clone_model` runs a model through its graph with other layers, and makes a plain functional model of
    the outputs, which has lost what is not in the graph. It alone hands over both functions. The model is then cloned
    by its config, as Keras clones all models that are not functional.

    Raises:
        ValueError: a clone on other inputs, or of other layers.
    """
    functional: Any = next(base for base in type(model).__mro__ if base.__name__ == "Functional")
    if len(functions) < 2:
        return read_outputs.run_through_graph(functional._run_through_graph, model, inputs, **functions)
    _refuse_what_is_lost(model, inputs, **functions)
    kind: Any = type(model)
    clone = kind.from_config(model.get_config())

    def give_clone(*_: Any, **options: Any) -> Any:
        object.__setattr__(model, "__class__", kind)
        return clone

    # Where a class has a functional model's constructor, Keras calls it with the outputs, and gets the clone.
    members = {"__init__": functional.__init__, "__new__": give_clone}
    object.__setattr__(model, "__class__", type(kind.__name__, (kind,), members))
    return model.output


class Graph(keras.Model):
    """A functional model that runs through the graph of a task as the task does."""

    def _run_through_graph(self, inputs: Ids, **functions: Any) -> Any:
        return run_through_graph(self, inputs, **functions)


def _refuse_what_is_lost(model: keras.Model, inputs: Ids, operation_fn: Callable[..., Any], call_fn: Any) -> None:
    """ValueError where the arguments of `clone_model` ask for a model that a config does not describe."""
    histories = (getattr(tensor, "_keras_history", None) for tensor in keras.tree.flatten(inputs))
    is_on_inputs = all(
        history is not None and isinstance(history.operation, keras.layers.InputLayer) for history in histories
    )
    if call_fn is None and is_on_inputs and all(_is_same(layer, operation_fn(layer)) for layer in model.layers):
        return
    owner = type(model).__name__
    raise ValueError(
        f"`{owner}`: `keras.models.clone_model` must be called without `clone_function`, `input_tensors` and "
        f"`call_function` that change the graph: a {owner} makes its own. Make it of other parts with its constructor, "
        "or freeze and replace layers after cloning."
    )


def _is_same(layer: keras.layers.Layer, other: Any) -> bool:
    """Whether another layer is a new one with the same config."""
    is_input = isinstance(layer, keras.layers.InputLayer)
    return is_input or (other is not layer and type(other) is type(layer) and other.get_config() == layer.get_config())


def rebuild(model: keras.Model, config: Any, changed: Iterable[Any], rows: Callable[[np.ndarray], np.ndarray]) -> Any:
    """A new model of the same class and the same weights in the same order, except for those that change.

    Args:
        model: a Keras model that `from_config` makes.
        config: the config of the new model.
        changed: weights of `model` that have other rows in the new one.
        rows: from the old to the new value of such a weight.

    Returns:
        The new model, compiled as a new one is.
    """
    new = type(model).from_config(config)
    ids = {id(weight) for weight in changed}
    for old, weight in zip(model.weights, new.weights, strict=True):
        value = keras.ops.convert_to_numpy(old)
        weight.assign(rows(value).astype(value.dtype) if id(old) in ids else value)
    return new


#: The modes whose weights a layer of the same config has again when it is quantized in the same way. "gptq" and "awq"
#: calibrate on data, and their state is not part of a config. Keras 3.15.1 skips the calibration besides, without a
#: word, and rounds to the nearest (https://github.com/keras-team/keras/pull/23512).
MODES = ("int8", "int4", "float8")

_KEY = "quantized_layers"


def quantize(model: keras.Model, mode: str | None = None, config: Any = None, **options: Any) -> None:
    """Quantizes the dense layers, as `keras.Model.quantize`, without a warning for each layer that has no weights.

    Args:
        model: the model.
        mode: one of `MODES`; that of `config` if None.
        config: Keras's quantization config.
        **options: further arguments of `keras.Model.quantize`.

    Raises:
        ValueError: another mode.
    """
    mode = getattr(config, "mode", None) if mode is None else mode
    cure = "Keras's other modes calibrate on data, which a `.keras` file does not hold; use int4 for as few bits."
    checks.one_of(type(model).__name__, "mode", mode, MODES, cure)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Layer .* does not have a `quantize` method", UserWarning)
        keras.Model.quantize(model, mode, config=config, **options)


def with_quantized_layers(model: keras.Model, config: dict[str, Any]) -> dict[str, Any]:
    """The config of a model, with the position, mode and config of each quantized layer if there is one."""
    quantized = [
        [index, layer.quantization_mode, keras.saving.serialize_keras_object(layer.quantization_config)]
        for index, layer in enumerate(all_layers(model))
        if _is_quantized(layer)
    ]
    return {**config, _KEY: quantized} if quantized else config


def made_quantized(model: keras.Model, config: dict[str, Any]) -> Any:
    """Quantizes a model with initial weights as `with_quantized_layers` described it."""
    layers = all_layers(model)
    for index, mode, layer_config in config.get(_KEY, ()):
        if not _is_quantized(layers[index]):  # a backbone in a task has quantized its own layers
            layers[index].quantize(mode, config=keras.saving.deserialize_keras_object(layer_config))
    return model


def constructor_config(config: dict[str, Any]) -> dict[str, Any]:
    """A config without the quantized layers."""
    return {key: value for key, value in config.items() if key != _KEY}


def _is_quantized(layer: keras.layers.Layer) -> bool:
    return isinstance(layer, keras.layers.Dense) and layer.quantization_mode is not None


Value = TypeVar("Value")


class Untracked(Generic[Value]):
    """Holds a value that Keras must not track as a part of the layer or model that owns it.

    Keras looks through the attributes of a layer or model for layers, variables, lists and dictionaries. It trains,
    saves and counts the layers and variables, and locks the lists and dictionaries once the owner is built. It does not
    look inside this class.

    Args:
        value: any object; read and replaced as `.value`.

    Examples:
        >>> import keras
        >>> model = keras.Sequential()
        >>> model.teacher = Untracked(keras.layers.Dense(2))
        >>> model.layers
        []
    """

    def __init__(self, value: Value):
        self.value = value
