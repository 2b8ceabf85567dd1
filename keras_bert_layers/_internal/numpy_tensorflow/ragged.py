"""`RaggedTensor`: rows of different lengths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from keras_bert_layers._internal.numpy_tensorflow.tensors import (
    COMPARISONS,
    OPERATORS,
    Tensor,
    convert_to_tensor,
    numpy_type,
    operand,
    to_array,
)
from keras_bert_layers._internal.numpy_tensorflow.types import (
    OBJECT,
    DType,
    Kind,
    Sizes,
    TensorShape,
    TensorSpec,
    Value,
    as_dtype,
)

_INT64 = np.dtype(np.int64)


class RaggedTensor:
    """Rows of different lengths: all their values, and where each row begins and ends.

    Args:
        values: a `Tensor`, or a `RaggedTensor` for rows of rows.
        row_splits: integers `(rows + 1,)`.
        length: the length of all rows, if they were made from a tensor.
    """

    __array_priority__ = 200
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Value, row_splits: Tensor, length: int | None = None):
        self.values, self.row_splits, self.uniform_row_length = values, row_splits, length

    @classmethod
    def from_row_splits(cls, values: Value, row_splits: Value, validate: bool = True) -> RaggedTensor:
        """Rows by where they begin, and where the last ends."""
        return cls(convert_to_tensor(values), Tensor(_splits(row_splits)))

    @classmethod
    def from_row_lengths(cls, values: Value, row_lengths: Value, validate: bool = True) -> RaggedTensor:
        """Rows by their lengths."""
        return cls(convert_to_tensor(values), Tensor(splits_of(_splits(row_lengths))))

    @classmethod
    def from_value_rowids(
        cls, values: Value, value_rowids: Value, nrows: Value = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows by the row of each value, in ascending order."""
        rows = _splits(value_rowids)
        count = int(nrows) if nrows is not None else int(rows[-1]) + 1 if rows.size else 0
        splits = np.searchsorted(rows, np.arange(count + 1)).astype(rows.dtype)
        return cls(convert_to_tensor(values), Tensor(splits))

    @classmethod
    def from_tensor(cls, tensor: Value, ragged_rank: int = 1) -> RaggedTensor:
        """The rows of a tensor, all equally long."""
        array = to_array(tensor)
        values = Tensor(array.reshape(-1, *array.shape[2:]))
        splits = np.arange(array.shape[0] + 1, dtype=np.int64) * array.shape[1]
        inner = values if ragged_rank == 1 else cls.from_tensor(values, ragged_rank - 1)
        return cls(inner, Tensor(splits), array.shape[1])

    @property
    def flat_values(self) -> Tensor:
        """The values without any rows."""
        return self.values.flat_values if isinstance(self.values, RaggedTensor) else self.values

    @property
    def ragged_rank(self) -> int:
        """How many axes have rows of different lengths."""
        return 1 + (self.values.ragged_rank if isinstance(self.values, RaggedTensor) else 0)

    @property
    def dtype(self) -> DType:
        """The type of the values."""
        return self.flat_values.dtype

    @property
    def shape(self) -> TensorShape:
        """The sizes of the axes, None for rows."""
        return TensorShape((len(self), self.uniform_row_length, *self.values.shape[1:]))

    def with_values(self, values: Value) -> RaggedTensor:
        """The same rows of other values."""
        return RaggedTensor(values, self.row_splits, self.uniform_row_length)

    def with_flat_values(self, values: Value) -> RaggedTensor:
        """The same rows of other flat values."""
        inner = self.values
        return self.with_values(inner.with_flat_values(values) if isinstance(inner, RaggedTensor) else values)

    def nrows(self, out_type: Kind = None) -> Tensor:
        """The number of rows."""
        return Tensor(np.asarray(len(self), numpy_type(out_type) or self.row_splits.array.dtype))

    def row_lengths(self, axis: int = 1) -> Any:
        """The length of each row."""
        if axis > 1:
            return self.with_values(self.values.row_lengths(axis - 1))
        return Tensor(np.diff(self.row_splits.array))

    def row_starts(self) -> Tensor:
        """Where each row begins."""
        return self.row_splits[:-1]

    def rows(self) -> np.ndarray:
        """The row of each value."""
        splits = self.row_splits.array
        return np.repeat(np.arange(len(splits) - 1, dtype=splits.dtype), np.diff(splits))

    def bounding_shape(self, axis: int | None = None, out_type: Kind = None) -> Tensor:
        """The number of rows, and the longest of each axis."""
        inner = self.values
        rest = inner.bounding_shape().array[1:] if isinstance(inner, RaggedTensor) else inner.array.shape[1:]
        widest = np.diff(self.row_splits.array).max(initial=0)
        shape = np.array([len(self), widest, *rest], numpy_type(out_type) or np.int64)
        return Tensor(shape if axis is None else shape[axis])

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """Neighbouring axes as one."""
        if outer_axis > 1:
            return self.with_values(self.values.merge_dims(outer_axis - 1, inner_axis - 1))
        merged: Any = self
        for _ in range(inner_axis - outer_axis):
            inner = merged.values
            merged = RaggedTensor(inner.values, inner.row_splits[merged.row_splits]) if outer_axis else inner
        return merged

    def to_tensor(self, default_value: Value = None, shape: Sizes = None) -> Tensor:
        """The rows as a tensor, filled up with a value, and cut to a shape."""
        flat, wanted = self.flat_values.array, [None] * len(self.shape) if shape is None else list(shape)
        pairs = zip(wanted, self.bounding_shape().array.tolist(), strict=True)
        sizes = [size if want is None or int(want) < 0 else int(want) for want, size in pairs]
        dtype = flat.dtype
        fill = (b"" if dtype == OBJECT else 0) if default_value is None else to_array(default_value, dtype)
        result = np.full(sizes, fill, dtype)
        if self.ragged_rank > 1:
            for row, part in zip(result, self, strict=False):
                row[...] = part.to_tensor(default_value, shape=row.shape).array
            return Tensor(result)
        lengths = np.minimum(np.diff(self.row_splits.array), sizes[1])[: sizes[0]]
        is_value = np.arange(sizes[1]) < lengths[:, None]
        if is_value.sum() < len(flat):
            rows = np.repeat(self.row_splits.array[: len(lengths)], lengths)
            flat = flat[rows + np.nonzero(is_value)[1]]
        result[: len(lengths)][is_value] = flat
        return Tensor(result)

    def to_list(self) -> list[Any]:
        """The rows as lists."""
        inner = self.values
        values = inner.to_list() if isinstance(inner, RaggedTensor) else inner.array.tolist()
        splits = self.row_splits.array.tolist()
        return [values[a:b] for a, b in itertools.pairwise(splits)]

    def numpy(self) -> np.ndarray:
        """The rows as an array of arrays; of equally long rows, as a matrix."""
        lengths = np.diff(self.row_splits.array)
        rows = [row.numpy() for row in self]
        if len(set(lengths.tolist())) == 1 and len({row.shape for row in rows}) == 1:
            return np.stack(rows)
        array = np.empty(len(rows), OBJECT)
        for index, row in enumerate(rows):
            array[index] = row
        return array if rows else np.zeros((0, 0), self.flat_values.array.dtype)

    def __array__(self, dtype: Kind = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy()

    def __len__(self) -> int:
        return len(self.row_splits.array) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: Value) -> Any:
        parts = list(index) if type(index) is tuple else [index]
        if Ellipsis in parts:
            place = parts.index(Ellipsis)
            missing = len(self.shape) + 1 - sum(part is not None for part in parts)
            parts[place : place + 1] = [slice(None)] * missing
        first, *others = parts
        rows = self._rows(first)
        if not others:
            return rows
        if not isinstance(first, slice):
            return rows[tuple(others)]
        inner, *rest = others
        if inner is None:
            return RaggedTensor(rows[(slice(None), *rest)], Tensor(np.arange(len(rows) + 1)))
        rows = rows._cut(inner)
        return rows.with_values(rows.values[(slice(None), *rest)]) if rest else rows

    def _rows(self, index: Value) -> Any:
        splits = self.row_splits.array
        if isinstance(index, slice):
            if index == slice(None):
                return self
            starts, ends = splits[:-1][index], splits[1:][index]
            return taken(self.values, starts, ends)
        place = int(index) + (len(self) if int(index) < 0 else 0)
        if not 0 <= place < len(self):
            raise IndexError(f"row {int(index)} of {len(self)} rows")
        return self.values[splits[place] : splits[place + 1]]

    def _cut(self, index: slice) -> RaggedTensor:
        """A slice of each row."""
        if index == slice(None):
            return self
        splits, lengths = self.row_splits.array, np.diff(self.row_splits.array)
        step = 1 if index.step is None else int(index.step)
        if step != 1:
            raise NotImplementedError("a step in rows")
        bounds = [None if bound is None else int(bound) for bound in (index.start, index.stop)]
        begin, end = (_clipped(b, lengths, d) for b, d in zip(bounds, (0 * lengths, lengths), strict=True))
        return taken(self.values, splits[:-1] + begin, splits[:-1] + np.maximum(begin, end))

    def __repr__(self) -> str:
        return f"<tf.RaggedTensor {self.to_list()}>"

    def __neg__(self) -> RaggedTensor:
        return self.with_flat_values(-self.flat_values)

    def __invert__(self) -> RaggedTensor:
        return self.with_flat_values(~self.flat_values)


def taken(values: Value, starts: np.ndarray, ends: np.ndarray) -> RaggedTensor:
    """Rows of values, whole or ragged, from `starts` to `ends`."""
    splits = splits_of(ends - starts)
    place = np.arange(splits[-1]) + np.repeat(starts - splits[:-1], ends - starts)
    if isinstance(values, RaggedTensor):
        bounds = values.row_splits.array
        return RaggedTensor(taken(values.values, bounds[:-1][place], bounds[1:][place]), Tensor(splits))
    return RaggedTensor(Tensor(values.array[place]), Tensor(splits))


def _clipped(bound: int | None, lengths: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    if bound is None:
        return otherwise
    return np.clip(bound + (lengths if bound < 0 else 0 * lengths), 0, lengths)


def _splits(values: Value) -> np.ndarray:
    array = to_array(values)
    is_kept = array.dtype == np.int32 and hasattr(values, "dtype")
    return array if is_kept or array.dtype == _INT64 else array.astype(_INT64)


def splits_of(lengths: np.ndarray) -> np.ndarray:
    """Where each of neighbouring rows begins, and where the last ends."""
    splits = np.zeros(len(lengths) + 1, lengths.dtype)
    np.cumsum(lengths, out=splits[1:])
    return splits


def map_flat(function: Callable[..., Any], *values: Value) -> Any:
    """A function of the values of ragged tensors with the same rows, and of others that fit them.

    Args:
        function: takes tensors, and returns one.
        *values: ragged tensors; others are the same for all values, or have one value for each row `(rows, 1)`.
    """
    ragged = [value for value in values if isinstance(value, RaggedTensor)]
    rows = max(ragged, key=lambda value: value.ragged_rank)

    def flat(value: Value) -> Any:
        if isinstance(value, RaggedTensor):
            if value.ragged_rank == rows.ragged_rank:
                return value.flat_values
            return map_flat(lambda part: part, rows.with_values(value)) if value is rows else value.flat_values
        if getattr(value, "shape", ()) in ((), (1,)) or isinstance(value, str | bytes | int | float):
            return value
        array = to_array(value)
        if array.ndim < 2:
            return Tensor(array)
        array = array[rows.rows(), 0 if array.shape[1] == 1 else slice(None)]
        return Tensor(array if rows.ragged_rank == 1 else array[rows.values.rows()])

    return rows.with_flat_values(function(*map(flat, values)))


def _ragged_operator(function: Callable[..., Any], *, reflected: bool = False) -> Any:
    def apply(first: Value, second: Value) -> Tensor:
        like = first if type(first) is Tensor else second
        first, second = (operand(part, like.array.dtype) for part in (first, second))
        return Tensor(function(first, second))

    def method(self: RaggedTensor, other: Value) -> Any:
        if other is None:
            return function is np.not_equal
        return map_flat(apply, other, self) if reflected else map_flat(apply, self, other)

    return method


_functions: dict[str, Callable[..., Any]] = {**OPERATORS, **COMPARISONS, "eq": np.equal, "ne": np.not_equal}
for _name, _function in _functions.items():
    setattr(RaggedTensor, f"__{_name}__", _ragged_operator(_function))
for _name, _function in OPERATORS.items():
    setattr(RaggedTensor, f"__r{_name}__", _ragged_operator(_function, reflected=True))


def ragged_range(
    starts: Value, limits: Value = None, deltas: Value = 1, dtype: Kind = None, row_splits_dtype: Kind = None
) -> RaggedTensor:
    """The integers from `starts` up to `limits`, a row for each."""
    first, last = (0, starts) if limits is None else (starts, limits)
    parts = [part for part in (first, last) if type(part) is Tensor]
    kind = numpy_type(dtype) or (parts[0].array.dtype if parts else None)
    begin, end = np.broadcast_arrays(*(np.atleast_1d(to_array(part, kind)) for part in (first, last)))
    lengths = np.maximum(end.astype(_INT64) - begin, 0)
    splits = splits_of(lengths)
    values = np.arange(splits[-1]) + np.repeat(begin - splits[:-1], lengths)
    return RaggedTensor(
        Tensor(values.astype(begin.dtype)), Tensor(splits.astype(numpy_type(row_splits_dtype) or _INT64))
    )


def ragged_constant(
    pylist: Value,
    dtype: Kind = None,
    ragged_rank: int | None = None,
    inner_shape: Value = None,
    row_splits_dtype: Kind = None,
) -> Any:
    """Nested lists as a ragged tensor.

    Args:
        pylist: the lists.
        dtype: the type of the values.
        ragged_rank: how many axes have rows of different lengths; None for all but the first.
        inner_shape: not used.
        row_splits_dtype: not used.
    """
    pylist = pylist.tolist() if isinstance(pylist, np.ndarray) else list(pylist)
    depth = _depth(pylist) if ragged_rank is None else ragged_rank + 1
    if depth < 2:
        return convert_to_tensor(pylist, dtype)
    rows = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in pylist]
    values = [value for row in rows for value in row]
    inner = ragged_constant(values, dtype, depth - 2) if depth > 2 else Tensor(to_array(values, numpy_type(dtype)))
    return RaggedTensor.from_row_lengths(inner, np.array([*map(len, rows)], np.int64))


def _depth(value: Value) -> int:
    if not isinstance(value, list | tuple | np.ndarray):
        return 0
    return 1 + max(map(_depth, value), default=0)


class RaggedTensorSpec(TensorSpec):
    """The shape and the type of a ragged tensor.

    Args:
        shape: sizes, None for rows.
        dtype: the type.
        ragged_rank: how many axes have rows of different lengths; None for all but the first.
        row_splits_dtype: the type of the row splits.
    """

    def __init__(
        self,
        shape: Sizes = None,
        dtype: Kind = "float32",
        ragged_rank: int | None = None,
        row_splits_dtype: Kind = "int64",
    ):
        super().__init__(shape, dtype)
        self.ragged_rank = (self.shape.rank or 1) - 1 if ragged_rank is None else ragged_rank
        self.row_splits_dtype = as_dtype(row_splits_dtype)

    @classmethod
    def from_value(cls, value: RaggedTensor) -> RaggedTensorSpec:
        """The spec of a ragged tensor."""
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    def __repr__(self) -> str:
        return f"RaggedTensorSpec({self.shape}, {self.dtype!r}, {self.ragged_rank}, {self.row_splits_dtype!r})"
