"""`keras.models.clone_model` of a model that is more than its graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras


def run_through_graph(model: Any, inputs: Any, **functions: Any) -> Any:
    """Keras's method of functional models, to be `_run_through_graph` of a subclass with a constructor of its own.

    `keras.models.clone_model` runs a model through its graph with other layers, and makes a plain functional model of
    the outputs, which has lost what is not in the graph. It alone hands over both functions. The model is then cloned
    by its config, as Keras clones all models that are not functional.

    Raises:
        ValueError: a clone on other inputs, or of other layers.
    """
    functional: Any = next(base for base in type(model).__mro__ if base.__name__ == "Functional")
    if len(functions) < 2:
        return functional._run_through_graph(model, inputs, **functions)
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


def _refuse_what_is_lost(model: Any, inputs: Any, operation_fn: Callable[..., Any], call_fn: Any) -> None:
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


def _is_same(layer: Any, other: Any) -> bool:
    """Whether another layer is a new one with the same config."""
    is_input = isinstance(layer, keras.layers.InputLayer)
    return is_input or (other is not layer and type(other) is type(layer) and other.get_config() == layer.get_config())
