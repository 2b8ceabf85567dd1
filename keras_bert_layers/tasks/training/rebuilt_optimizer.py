"""`rebuild`: the same optimizer for other weights, with its state of those that it trained before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.layers.lora import is_lora
from keras_bert_layers.optimizers.adamw import BertAdamW

Variables = Sequence[keras.Variable]


def parts_of(optimizer: keras.optimizers.Optimizer) -> list[Any]:
    """An optimizer, and those in it: that of a `LossScaleOptimizer`, or those of a `MultiOptimizer`."""
    inner = [getattr(optimizer, "inner_optimizer", None), *getattr(optimizer, "optimizers", ())]
    return [optimizer, *(part for part in inner if part is not None)]


def is_built_for(optimizer: keras.optimizers.Optimizer, variables: Variables) -> bool:
    """Whether a built optimizer trains these weights, in this order."""
    return list(map(id, optimizer._trainable_variables)) == list(map(id, variables))


def rebuild(optimizer: keras.optimizers.Optimizer, variables: Variables) -> None:
    """Builds an optimizer, in place, for other weights than before.

    The number of steps and the moments of weights that remain are kept. Where LoRA came, all begins anew.

    Args:
        optimizer: an optimizer that was built.
        variables: the weights to train from now on. The first steps of new ones have a bias correction of their own
            under `BertAdamW`.

    Raises:
        RuntimeError: the optimizer is of another kind than Keras's, and cannot be built twice.
    """
    known = list(map(id, optimizer._trainable_variables))
    keeps_state = not any(is_lora(variable) for variable in variables if id(variable) not in known)
    parts = [(part, _State(part)) for part in parts_of(optimizer)]
    try:
        for _, state in parts:
            state.take()
        optimizer.build(variables)
        for part, state in parts:
            new = state.give(keeps_state=keeps_state)
            if isinstance(part, BertAdamW):
                part.restart(new)
    except Exception as error:
        cure = "Call `compile` with a new optimizer after freezing or unfreezing weights."
        rule = "be one that can be built again for other trainable weights"
        raise RuntimeError(checks.message("fit", "optimizer", rule, type(optimizer).__name__, cure)) from error


class _State:
    """What one optimizer keeps between steps: single variables, and lists with a variable for each weight."""

    def __init__(self, optimizer: keras.optimizers.Optimizer):
        self._optimizer = optimizer
        self._tracked = list(optimizer._variables)
        self._indices = {id(variable): index for index, variable in enumerate(optimizer._trainable_variables)}
        held = vars(optimizer).items()
        others = [id(optimizer._variables), id(optimizer._trainable_variables)]
        self._single = {name: value for name, value in held if isinstance(value, keras.Variable)}
        self._lists = {
            name: list(value)
            for name, value in held
            if isinstance(value, list) and len(value) == len(self._indices) and id(value) not in others
            if any(isinstance(one, keras.Variable) for one in value)
        }

    def take(self) -> None:
        """Makes the optimizer one that was not built."""
        self._optimizer._trainable_variables_indices.clear()
        self._optimizer._trainable_variables = []
        self._optimizer.built = False

    def give(self, *, keeps_state: bool) -> list[keras.Variable]:
        """Gives the optimizer its state back after it was built; returns the weights that are new to it."""
        optimizer = self._optimizer
        held = [id(getattr(optimizer, name)) for name in self._single]
        for variable in self._tracked:
            if id(variable) not in held:  # the number of steps and the like, which `build` does not make, stay
                optimizer._untrack_variable(variable)
        if not keeps_state:
            optimizer._iterations.assign(0)
            return list(optimizer._trainable_variables)
        for name, value in self._single.items():
            if (made := getattr(optimizer, name)) is not value:
                made.assign(value)
        for index, variable in enumerate(optimizer._trainable_variables):
            before = self._indices.get(id(variable))
            for name, values in self._lists.items():
                made = getattr(optimizer, name)[index]
                if made is not None and before is not None:
                    made.assign(values[before])
                elif made is not None and name == "_model_variables_moving_average":
                    made.assign(variable)
        return [variable for variable in optimizer._trainable_variables if id(variable) not in self._indices]
