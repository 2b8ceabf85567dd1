"""`Tensor`, a NumPy array with TensorFlow's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from keras_bert_layers._internal.numpy_tensorflow.types import (
    OBJECT,
    DType,
    Kind,
    Sizes,
    TensorShape,
    Value,
    as_dtype,
    dtype_of,
    invalid,
)

_INT32, _FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)
# What a type takes without loss of kind, by NumPy's letters for kinds.
_COMPATIBLE = {"i": "iub", "u": "iub", "f": "iuf", "b": "b", "V": "iufV"}


class Tensor:
    """Values: a NumPy array, of Python's bytes for strings. Nothing changes it.

    Args:
        array: the values; a scalar of NumPy or bytes for one value.

    Attributes:
        array: the values, always an array.
    """

    __slots__ = ("array",)
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: Value):
        if type(array) is not np.ndarray:
            array = _of_string(array) if type(array) is bytes else np.asarray(array)
        self.array = array

    @property
    def shape(self) -> TensorShape:
        """The sizes of the axes."""
        return TensorShape(self.array.shape)

    @property
    def dtype(self) -> DType:
        """The type of the values."""
        return dtype_of(self.array.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.array.ndim

    def numpy(self) -> Any:
        """The array, or the single value."""
        return self.array[()]

    def set_shape(self, shape: Sizes) -> None:
        """Checks the shape; ValueError."""
        if not TensorShape(shape).is_compatible_with(self.shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {shape}.")

    def __array__(self, dtype: Kind = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.array, dtype) if copy else np.asarray(self.array, dtype)

    def __getitem__(self, index: Value) -> Tensor:
        if type(index) is tuple:
            index = tuple(part.array if type(part) is Tensor else part for part in index)
        elif type(index) is Tensor:
            index = index.array
        try:
            return Tensor(self.array[index])
        except IndexError as error:
            raise invalid(f"slice index out of bounds: {error}") from None

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Tensor]:
        if not self.array.ndim:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return map(Tensor, self.array)

    def __bool__(self) -> bool:
        return bool(self.array)

    def __index__(self) -> int:
        return self.array.__index__()

    def __int__(self) -> int:
        return int(self.array)

    def __float__(self) -> float:
        return float(self.array)

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={self.numpy()!r}>"

    def __str__(self) -> str:
        return f"tf.Tensor({self.numpy()}, shape={self.shape}, dtype={self.dtype.name})"

    def __format__(self, spec: str) -> str:
        return format(self.numpy() if not self.array.ndim else str(self), spec)

    def __neg__(self) -> Tensor:
        return Tensor(np.negative(self.array))

    def __invert__(self) -> Tensor:
        return Tensor(np.invert(self.array))

    def __abs__(self) -> Tensor:
        return Tensor(np.abs(self.array))

    def __eq__(self, other: object) -> Any:
        return False if other is None else _equal(self, other)

    def __ne__(self, other: object) -> Any:
        return True if other is None else _not_equal(self, other)


def operand(value: Value, dtype: np.dtype) -> Any:
    """A value as an array of the type of the other operand.

    Raises:
        InvalidArgumentError: a tensor of another type.
        TypeError, ValueError: a value that is no value of this type.
    """
    if type(value) is Tensor:
        if value.array.dtype != dtype:
            raise invalid(f"expected values of {dtype}, but they are of {value.array.dtype}")
        return value.array
    if type(value) is int and dtype.kind in "iuf":
        return np.array(value, dtype)
    return to_array(value, dtype)


def _operator(function: Callable[..., Any], *, reflected: bool = False) -> Any:
    def method(self: Tensor, other: Value) -> Any:
        if getattr(other, "row_splits", None) is not None:
            return NotImplemented
        values = operand(other, self.array.dtype)
        return Tensor(function(values, self.array) if reflected else function(self.array, values))

    return method


def floor_divide(first: np.ndarray, second: np.ndarray) -> Any:
    """Division towards minus infinity."""
    return np.floor_divide(*_checked(first, second))


def remainder(first: np.ndarray, second: np.ndarray) -> Any:
    """What is left by `floor_divide`."""
    return np.remainder(*_checked(first, second))


def divide(first: np.ndarray, second: np.ndarray) -> Any:
    """Division of floats; integers become float64."""
    with np.errstate(all="ignore"):
        return np.true_divide(first, second)


def _checked(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if second.dtype.kind != "f" and not second.all():
        raise invalid("Integer division by zero")
    return first, second


_equal, _not_equal = _operator(np.equal), _operator(np.not_equal)
OPERATORS: dict[str, Callable[..., Any]] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": divide, "floordiv": floor_divide},
    **{"mod": remainder, "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor},
}
COMPARISONS: dict[str, Callable[..., Any]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
for _name, _function in {**OPERATORS, **COMPARISONS}.items():
    setattr(Tensor, f"__{_name}__", _operator(_function))
for _name, _function in OPERATORS.items():
    setattr(Tensor, f"__r{_name}__", _operator(_function, reflected=True))


def _of_string(text: bytes) -> np.ndarray:
    array = np.empty((), OBJECT)
    array[()] = text
    return array


def string_array(texts: list[bytes]) -> np.ndarray:
    """Strings as an array `[B]`."""
    array = np.empty(len(texts), OBJECT)
    array[:] = texts
    return array


def _encoded(text: Value) -> bytes:
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, bytes):
        return text if type(text) is bytes else bytes(text)
    raise TypeError(f"Expected string, but got {text!r:.80} of type {type(text).__name__!r}.")


def _texts(values: list[Any]) -> list[bytes]:
    """Strings in bytes. Most lists are of one kind, and then a comprehension is much faster."""
    kinds = set(map(type, values))
    return values if kinds == {bytes} else [t.encode() for t in values] if kinds == {str} else [*map(_encoded, values)]


def to_array(value: Value, dtype: np.dtype | None = None) -> np.ndarray:
    """A value as an array, by the rules of `tf.convert_to_tensor`.

    Args:
        value: a tensor, an array, a number, a string, a nested list of them, or what NumPy makes an array of.
        dtype: the type of the array; None for that of the value.

    Raises:
        TypeError: values of another kind.
        ValueError: a tensor of another type; rows of different lengths; half a character.
    """
    if type(value) is Tensor:
        if dtype is not None and value.array.dtype != dtype:
            raise ValueError(f"Tensor conversion requested dtype {dtype} for Tensor with dtype {value.dtype.name}")
        return value.array
    if isinstance(value, list | tuple):
        return _of_list(value, dtype)
    if isinstance(value, str | bytes):
        return _in_kind(_of_string(_encoded(value)), dtype)
    if isinstance(value, int | float) and not isinstance(value, np.generic):
        return _of_numbers(value, dtype)
    if value is None:
        raise ValueError("Attempt to convert a value (None) with an unsupported type to a Tensor.")
    array = np.asarray(value)
    if array.dtype.kind in "SUOT":
        texts = array.ravel().tolist()
        if array.dtype != OBJECT or set(map(type, texts)) != {bytes}:
            array = string_array(_texts(texts)).reshape(array.shape)
    if dtype is None or (array.dtype == OBJECT) != (dtype == OBJECT):
        return _in_kind(array, dtype)
    return array.astype(dtype, copy=False)


def _of_list(value: Value, dtype: np.dtype | None) -> np.ndarray:
    kinds = set(map(type, value))
    if not kinds:
        return np.zeros(0, dtype or _FLOAT32)
    if all(issubclass(kind, str | bytes) for kind in kinds):
        return _in_kind(string_array(_texts(value)), dtype)
    if Tensor in kinds:
        dtype = dtype or next(part.array.dtype for part in value if type(part) is Tensor)
        return np.stack([to_array(part, dtype) for part in value])
    if kinds <= {list, tuple} and _has_numbers(value):
        return _of_numbers(value, dtype)
    if any(issubclass(kind, list | tuple | np.ndarray) for kind in kinds):
        parts = [to_array(part, dtype) for part in value]
        if len({part.shape for part in parts}) > 1:
            raise ValueError("Can't convert non-rectangular Python sequence to Tensor.")
        return np.stack(parts)
    return _of_numbers(value, dtype)


def _has_numbers(value: Value) -> bool:
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, int | float)


def _of_numbers(value: Value, dtype: np.dtype | None) -> np.ndarray:
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind not in "iufb":
        raise TypeError(f"Cannot convert {value!r:.80} to a tensor.")
    if dtype is None:
        fits = kind == "i" and (not array.size or max(-array.min() - 1, array.max()) < 2**31)
        dtype = _INT32 if fits else _FLOAT32 if kind == "f" else array.dtype
    elif kind in "iu" and dtype.kind in "iu":
        return np.asarray(value, dtype)  # refuses what is too large
    return _in_kind(array, dtype)


def _in_kind(array: np.ndarray, dtype: np.dtype | None) -> np.ndarray:
    """The array in another type of a kind that takes it; TypeError if it does not."""
    if dtype is None or array.dtype == dtype:
        return array
    if array.dtype.kind not in _COMPATIBLE.get(dtype.kind, ""):
        raise TypeError(f"Cannot convert values of {array.dtype} to a tensor of {dtype}.")
    return array.astype(dtype)


def numpy_type(dtype: Kind) -> np.dtype | None:
    """NumPy's type, or None for None."""
    return None if dtype is None else as_dtype(dtype).numpy


def convert_to_tensor(value: Value, dtype: Kind = None, dtype_hint: Kind = None) -> Any:
    """A value as a tensor; a ragged one stays.

    Args:
        value: a tensor, an array, or nested lists.
        dtype: the type of the tensor.
        dtype_hint: the type, if the value can have it.

    Raises:
        TypeError, ValueError: a value that is no tensor of this type.
    """
    if type(value) is Tensor and (dtype is None or value.dtype == dtype):
        return value
    if hasattr(value, "row_splits"):
        return value
    if dtype is None and dtype_hint is not None:
        try:
            return Tensor(to_array(value, numpy_type(dtype_hint)))
        except (TypeError, ValueError):
            pass
    return Tensor(to_array(value, numpy_type(dtype)))


def constant(value: Value, dtype: Kind = None, shape: Sizes = None) -> Tensor:
    """A new tensor of a value; one value fills a shape."""
    array = to_array(value, numpy_type(dtype))
    if shape is None:
        return Tensor(array.copy())
    shape = tuple(map(int, shape))
    return Tensor(np.full(shape, array) if array.size == 1 and not array.ndim else array.reshape(shape).copy())
