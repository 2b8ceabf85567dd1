"""What the text path uses of TensorFlow, in NumPy, for where TensorFlow is not installed.

The names are TensorFlow's, and so are the results. Nothing makes a graph: `tf.function` returns the function itself.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import keras

from keras_bert_layers._internal.lazy import not_installed
from keras_bert_layers._internal.numpy_tensorflow import arrays, control, shapes, tensors, types
from keras_bert_layers._internal.numpy_tensorflow import datasets as data  # noqa: F401  tf.data
from keras_bert_layers._internal.numpy_tensorflow import ragged as ragged_tensors
from keras_bert_layers._internal.numpy_tensorflow import random as random_numbers
from keras_bert_layers._internal.numpy_tensorflow import strings as string_functions

__version__ = "0"  # other packages ask for it


class _Names(ModuleType):
    """A module of TensorFlow with some of its names; any other raises ModuleNotFoundError when it is used.

    Args:
        name: such as "tf.math".
        names: name -> what it is.
    """

    def __init__(self, name: str, names: dict[str, Any]):
        super().__init__(name)
        vars(self).update(names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise not_installed(f"`{self.__name__}.{name}`")


def _own(module: ModuleType) -> dict[str, Any]:
    """The public functions and classes that a module defines."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }


# Of functions, those that cannot have TensorFlow's names in Python.
_math = _own(arrays) | {
    "abs": arrays.absolute,
    "round": arrays.rounded,
    "add_n": shapes.add_n,
}


def _chosen(names: str) -> dict[str, Any]:
    return {name: _math[name] for name in names.split()}


_others = {
    "Assert": control.check,
    "control_dependencies": control.null_context,
    "device": control.null_context,
    "executing_eagerly": lambda: True,
    "init_scope": control.null_context,
    "newaxis": None,
    "range": shapes.integers,
    "shape": shapes.shape_of,
}
globals().update(types.DTYPES | _own(types) | _own(tensors) | _math | _own(shapes) | _own(control) | _others)
RaggedTensor, RaggedTensorSpec = ragged_tensors.RaggedTensor, ragged_tensors.RaggedTensorSpec

math = _Names("tf.math", _math)
bitwise = _Names("tf.bitwise", _chosen("bitwise_and bitwise_or bitwise_xor left_shift right_shift"))
debugging = _Names("tf.debugging", {"Assert": control.check, "assert_less_equal": control.check_less_equal})
errors = _Names("tf.errors", {name: value for name, value in _own(types).items() if name.endswith("Error")})
io = _Names("tf.io", {"decode_raw": shapes.decode_raw})
nest = _Names(
    "tf.nest",
    {
        "assert_same_structure": keras.tree.assert_same_structure,
        "flatten": keras.tree.flatten,
        "map_structure": keras.tree.map_structure,
        "pack_sequence_as": keras.tree.pack_sequence_as,
    },
)
nn = _Names("tf.nn", _chosen("elu gelu leaky_relu relu relu6 sigmoid silu softmax softplus tanh"))
raw_ops = _Names("tf.raw_ops", {"Bucketize": arrays.bucketize})
strings = _Names("tf.strings", _own(string_functions))
random = _Names("tf.random", _own(random_numbers))
_rows = {"constant": ragged_tensors.ragged_constant, "range": ragged_tensors.ragged_range}
ragged = _Names("tf.ragged", _rows)


def __getattr__(name: str) -> Any:
    """ModuleNotFoundError for other names of TensorFlow."""
    if name.startswith("__"):
        raise AttributeError(name)
    raise not_installed(f"`tf.{name}`")
