"""Types, shapes and errors of tensors."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

#: What becomes a tensor: a tensor, an array, a number, a string, or nested lists of them.
Value: TypeAlias = Any
#: A type of values: TensorFlow's or NumPy's, its name, or a type of Python.
Kind: TypeAlias = Any
#: Sizes of axes: numbers, or a tensor of them.
Sizes: TypeAlias = Any

OBJECT = np.dtype(object)


class OpError(Exception):
    """An error of an operation.

    Args:
        *parts: None, None, and what is wrong; Keras gives only the last.
    """

    def __init__(self, *parts: Value):
        super().__init__(parts[-1])
        self.message = parts[-1]


class InvalidArgumentError(OpError):
    """Values that an operation does not take."""


class OutOfRangeError(OpError):
    """The end of a dataset."""


class NotFoundError(OpError):
    """A file that does not exist."""


def invalid(message: str) -> InvalidArgumentError:
    """The error for values that an operation does not take."""
    return InvalidArgumentError(None, None, message)


class DType:
    """A type of values; there is one object for each.

    Args:
        name: TensorFlow's name.
        numpy_type: NumPy's type.
    """

    def __init__(self, name: str, numpy_type: Kind):
        self.name = name
        self.numpy = np.dtype(numpy_type)
        self.as_numpy_dtype = self.numpy.type
        self.is_integer, self.is_floating = self.numpy.kind in "iu", self.numpy.kind in "fV"
        self.is_bool = self.numpy.kind == "b"
        self.base_dtype = self

    @property
    def size(self) -> int:
        """The number of bytes of a value."""
        return self.numpy.itemsize

    @property
    def min(self) -> Any:
        """The smallest value."""
        return self._limits().min

    @property
    def max(self) -> Any:
        """The largest value."""
        return self._limits().max

    def _limits(self) -> Any:
        return np.iinfo(self.numpy) if self.is_integer else np.finfo(self.numpy)

    def is_compatible_with(self, other: Value) -> bool:
        """Whether it is the same type."""
        return as_dtype(other) is self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        try:
            return other is not None and as_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __reduce__(self) -> Any:
        return as_dtype, (self.name,)


_NUMBERS = [
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
]
_OTHERS = {"bfloat16": ml_dtypes.bfloat16, "string": object}
DTYPES = {name: DType(name, kind) for name, kind in (dict(zip(_NUMBERS, _NUMBERS, strict=True)) | _OTHERS).items()}
_OF_NUMPY: dict[np.dtype, DType] = {dtype.numpy: dtype for dtype in DTYPES.values()}
_PYTHON = {int: "int32", float: "float32", bool: "bool", str: "string", bytes: "string"}


def as_dtype(value: Value) -> DType:
    """The type of TensorFlow's or NumPy's name, of a type of NumPy or Python, or of a type itself; TypeError if none.

    Args:
        value: such as `"int32"`, `np.int32` or `int`.
    """
    if type(value) is DType:
        return value
    try:
        found = DTYPES.get(_PYTHON.get(value, value))
        return _OF_NUMPY[np.dtype(value) if np.dtype(value).kind not in "SU" else OBJECT] if found is None else found
    except (KeyError, TypeError):
        raise TypeError(f"Cannot convert the argument `type_value`: {value!r} to a TensorFlow DType.") from None


def dtype_of(numpy_type: np.dtype) -> DType:
    """The type of an array's values."""
    return _OF_NUMPY.get(numpy_type) or DType(numpy_type.name, numpy_type)


class TensorShape(tuple[Any, ...]):
    """The sizes of axes, None for one that is not known.

    Args:
        dims: the sizes; None if not even their number is known.
    """

    rank: int | None

    def __new__(cls, dims: Sizes = ()) -> TensorShape:
        shape = super().__new__(cls, () if dims is None else dims)
        shape.rank = None if dims is None else len(shape)
        return shape

    def as_list(self) -> list[int | None]:
        """The sizes."""
        return list(self)

    def is_compatible_with(self, other: Value) -> bool:
        """Whether both can be the shape of one tensor."""
        other = other if isinstance(other, TensorShape) else TensorShape(other)
        if self.rank is None or other.rank is None:
            return True
        pairs = zip(self, other, strict=False)
        return len(self) == len(other) and all(a is None or b is None or a == b for a, b in pairs)

    def __getitem__(self, index: Value) -> Any:
        found = super().__getitem__(index)
        return TensorShape(found) if isinstance(index, slice) else found

    def __add__(self, other: Value) -> Any:
        return TensorShape((*self, *other))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | list) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __str__(self) -> str:
        if self.rank is None:
            return "<unknown>"
        return f"({self[0]},)" if len(self) == 1 else "(" + ", ".join(map(str, self)) + ")"

    def __repr__(self) -> str:
        return f"TensorShape({None if self.rank is None else list(self)})"


class TensorSpec:
    """The shape and the type of a tensor.

    Args:
        shape: sizes, None for any; None for any number of axes.
        dtype: the type.
        name: a name.
    """

    def __init__(self, shape: Sizes = None, dtype: Kind = "float32", name: str | None = None):
        self.shape, self.dtype, self.name = TensorShape(shape), as_dtype(dtype), name

    @classmethod
    def from_tensor(cls, tensor: Value, name: str | None = None) -> TensorSpec:
        """The spec of a tensor."""
        return cls(tensor.shape, tensor.dtype, name)

    def is_compatible_with(self, other: Value) -> bool:
        """Whether a tensor, or another spec, has this type and a shape that fits."""
        return self.dtype == other.dtype and self.shape.is_compatible_with(other.shape)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.name))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"
