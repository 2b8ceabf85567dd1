"""TensorFlow's functions that make tensors, choose from them, and put them together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal.numpy_tensorflow.arrays import alike, on_values
from keras_bert_layers._internal.numpy_tensorflow.ragged import RaggedTensor, splits_of, taken
from keras_bert_layers._internal.numpy_tensorflow.tensors import Tensor, convert_to_tensor, numpy_type, to_array
from keras_bert_layers._internal.numpy_tensorflow.types import OBJECT, DType, Kind, Sizes, Value, invalid

_INT64 = np.dtype(np.int64)
_UNSIGNED = {4: np.uint32, 8: np.uint64}


def sizes_of(shape: Sizes) -> tuple[int, ...]:
    """A shape, of a tensor, a number or a sequence of either, as integers."""
    if type(shape) is Tensor:
        shape = shape.array.tolist()
    return tuple(map(int, shape)) if isinstance(shape, list | tuple | np.ndarray) else (int(shape),)


def fill(dims: Sizes, value: Value) -> Tensor:
    """One value in each place."""
    array = to_array(value)
    return Tensor(np.full(sizes_of(dims), array, array.dtype))


def zeros(shape: Sizes, dtype: Kind = "float32") -> Tensor:
    """Zeros, or empty strings."""
    to = numpy_type(dtype) or _INT64
    return Tensor(np.full(sizes_of(shape), b"", OBJECT) if to == OBJECT else np.zeros(sizes_of(shape), to))


def ones(shape: Sizes, dtype: Kind = "float32") -> Tensor:
    """Ones."""
    return Tensor(np.ones(sizes_of(shape), numpy_type(dtype)))


@on_values
def zeros_like(input: Value, dtype: Kind = None) -> Tensor:
    """Zeros, or empty strings, of the same shape."""
    array = to_array(input)
    to = numpy_type(dtype) or array.dtype
    return Tensor(np.full(array.shape, b"", OBJECT) if to == OBJECT else np.zeros(array.shape, to))


@on_values
def ones_like(input: Value, dtype: Kind = None) -> Tensor:
    """Ones of the same shape."""
    array = to_array(input)
    return Tensor(np.ones(array.shape, numpy_type(dtype) or array.dtype))


def integers(start: Value, limit: Value = None, delta: Value = 1, dtype: Kind = None) -> Tensor:
    """The numbers from `start` up to `limit`; TensorFlow's `range`."""
    begin, end = (0, start) if limit is None else (start, limit)
    kind = numpy_type(dtype)
    if kind is None:
        parts = [part for part in (begin, end, delta) if hasattr(part, "dtype")]
        kind = to_array(parts[0] if parts else [begin, end, delta]).dtype
    values = [part.array[()] if type(part) is Tensor else part for part in (begin, end, delta)]
    if values[0] > values[1] and delta > 0:
        raise invalid(f"Requires start <= limit when delta > 0: {values[0]}/{values[1]}")
    return Tensor(np.arange(*values, dtype=kind))


def size(input: Value, out_type: Kind = "int32") -> Tensor:
    """The number of values."""
    value = input.flat_values if isinstance(input, RaggedTensor) else input
    return Tensor(np.array(to_array(value).size, numpy_type(out_type)))


def shape_of(input: Value, out_type: Kind = "int32") -> Tensor:
    """The sizes of the axes."""
    return Tensor(np.array(to_array(input).shape, numpy_type(out_type)))


def reshape(tensor: Value, shape: Sizes) -> Tensor:
    """The same values in another shape."""
    array, sizes = to_array(tensor), sizes_of(shape)
    if not array.size and 0 in sizes:  # NumPy does not infer the size of an axis then; TensorFlow leaves out zeros
        known = math.prod(size for size in sizes if size > 0)
        sizes = tuple(math.prod(filter(None, array.shape)) // known if size == -1 else size for size in sizes)
    try:
        return Tensor(array.reshape(sizes))
    except ValueError as error:
        raise invalid(str(error)) from None


@on_values
def identity(input: Value) -> Any:
    """The tensor itself."""
    return convert_to_tensor(input)


def expand_dims(input: Value, axis: Value) -> Any:
    """One more axis, of size 1."""
    if isinstance(input, RaggedTensor):
        if axis in (-1, input.shape.rank):
            return input.with_flat_values(input.flat_values[..., None])
        if axis == 0:
            return RaggedTensor(input, Tensor(np.array([0, len(input)], np.int64)))
        raise NotImplementedError(f"axis {axis} of a ragged tensor")
    return Tensor(np.expand_dims(to_array(input), int(axis)))


def transpose(a: Value, perm: Value = None) -> Tensor:
    """The axes in another order."""
    return Tensor(np.transpose(to_array(a), None if perm is None else sizes_of(perm)))


def tile(input: Value, multiples: Sizes) -> Tensor:
    """The values several times."""
    return Tensor(np.tile(to_array(input), sizes_of(multiples)))


def repeat(input: Value, repeats: Value, axis: Value = None) -> Tensor:
    """Each value several times."""
    return Tensor(np.repeat(to_array(input), to_array(repeats), axis))


def broadcast_to(input: Value, shape: Sizes) -> Tensor:
    """The values in a larger shape."""
    return Tensor(np.broadcast_to(to_array(input), sizes_of(shape)))


def pad(tensor: Value, paddings: Value, mode: str = "CONSTANT", constant_values: Value = None) -> Tensor:
    """The values with others around them."""
    array = to_array(tensor)
    around = to_array(paddings).reshape(-1, 2).tolist()
    shape = [length + before + after for length, (before, after) in zip(array.shape, around, strict=True)]
    result = zeros(shape, array.dtype).array
    if constant_values is not None:
        result[...] = to_array(constant_values, array.dtype)
    result[tuple(slice(before, before + n) for n, (before, _) in zip(array.shape, around, strict=True))] = array
    return Tensor(result)


def stack(values: Value, axis: int = 0) -> Tensor:
    """Tensors of one shape as one, along a new axis."""
    return Tensor(np.stack(alike(*values), axis))


def unstack(value: Value, num: Value = None, axis: int = 0) -> list[Tensor]:
    """The tensors along an axis."""
    return list(map(Tensor, np.moveaxis(to_array(value), axis, 0)))


def concat(values: Value, axis: Value) -> Any:
    """Tensors as one, along an axis."""
    if not isinstance(values, list | tuple):
        values = [values]
    if any(isinstance(value, RaggedTensor) for value in values):
        return _concat_rows(values, int(axis))
    return Tensor(np.concatenate(alike(*values), int(axis)))


def _concat_rows(values: Sequence[Any], axis: int) -> RaggedTensor:
    like = next(value for value in values if isinstance(value, RaggedTensor))
    axis += len(like.shape) * (axis < 0)
    dtype = like.flat_values.array.dtype
    parts = [v if isinstance(v, RaggedTensor) else RaggedTensor.from_tensor(Tensor(to_array(v, dtype))) for v in values]
    if axis > 1:
        return like.with_values(concat([part.values for part in parts], axis - 1))
    ends = np.cumsum([0, *(int(part.row_splits.array[-1]) for part in parts)])
    inner = concat([part.values for part in parts], 0)
    if axis == 0:
        lengths = np.concatenate([np.diff(part.row_splits.array) for part in parts])
        return RaggedTensor(inner, Tensor(splits_of(lengths)))
    # The parts of each row are far apart: rows of all parts, chosen in the order of the result.
    bounds = np.stack([part.row_splits.array + end for part, end in zip(parts, ends, strict=False)], 1)
    rows = taken(inner, bounds[:-1].ravel(), bounds[1:].ravel())
    return RaggedTensor(rows.values, Tensor(np.ascontiguousarray(rows.row_splits.array[:: len(parts)])))


def _checked_indices(indices: Value, count: int) -> np.ndarray:
    array = to_array(indices)
    # Negative ones are large as unsigned ones.
    if array.size and array.view(_UNSIGNED.get(array.itemsize, array.dtype)).max() >= count:
        raise invalid(f"indices are not in [0, {count}): {array.ravel()[:20].tolist()}")
    return array


def gather(
    params: Value, indices: Value, validate_indices: Value = None, axis: Value = None, batch_dims: int = 0
) -> Any:
    """The values at places along an axis; InvalidArgumentError for places outside."""
    axis = batch_dims if axis is None else int(axis)
    if isinstance(indices, RaggedTensor):
        return indices.with_flat_values(gather(params, indices.flat_values, axis=axis))
    if isinstance(params, RaggedTensor):
        splits = params.row_splits.array
        places = _checked_indices(indices, len(params))
        rows = taken(params.values, splits[:-1][places.ravel()], splits[1:][places.ravel()])
        return rows if places.ndim == 1 else rows[0] if not places.ndim else _in_rows(rows, places)
    array = to_array(params)
    axis += array.ndim * (axis < 0)
    if batch_dims:
        return _gather_in_batch(array, indices, axis, batch_dims + (to_array(indices).ndim if batch_dims < 0 else 0))
    places = _checked_indices(indices, array.shape[axis])
    return Tensor(array.take(places, axis, mode="clip"))


def _in_rows(rows: RaggedTensor, places: np.ndarray) -> RaggedTensor:
    return RaggedTensor(rows, Tensor(np.arange(len(places) + 1, dtype=np.int64) * places.shape[1]))


def _gather_in_batch(array: np.ndarray, indices: Value, axis: int, batch_dims: int) -> Tensor:
    places = _checked_indices(indices, array.shape[axis])
    if axis != batch_dims:
        array = np.moveaxis(array, axis, batch_dims)
    batch = places.shape[:batch_dims]
    flat = (
        array.reshape(-1, *array.shape[batch_dims:]) if array.size else array.reshape(*batch, *array.shape[batch_dims:])
    )
    if not array.size:
        return Tensor(np.zeros(places.shape + array.shape[batch_dims + 1 :], array.dtype))
    rows = places.reshape(len(flat), -1)
    found = flat[np.arange(len(flat))[:, None], rows]
    return Tensor(found.reshape(places.shape + array.shape[batch_dims + 1 :]))


def gather_nd(params: Value, indices: Value, batch_dims: int = 0) -> Tensor:
    """The values at places, given by one index for each of the first axes."""
    array, places = to_array(params), to_array(indices)
    return Tensor(array[_by_axis(array.shape, places)])


def _by_axis(shape: tuple[int, ...], places: np.ndarray) -> tuple[np.ndarray, ...]:
    columns = [places[..., axis] for axis in range(places.shape[-1])]
    return tuple(_checked_indices(column, length) for column, length in zip(columns, shape, strict=False))


def _scattered(function: Callable[..., Any], array: np.ndarray, indices: Value, updates: Value) -> Tensor:
    function(array, _by_axis(array.shape, to_array(indices)), to_array(updates, array.dtype))
    return Tensor(array)


def scatter_nd(indices: Value, updates: Value, shape: Sizes) -> Tensor:
    """Zeros with values added at places."""
    values = to_array(updates)
    return _scattered(np.add.at, np.zeros(sizes_of(shape), values.dtype), indices, values)


def tensor_scatter_nd_update(tensor: Value, indices: Value, updates: Value) -> Tensor:
    """A tensor with other values at places."""
    return _scattered(np.ndarray.__setitem__, to_array(tensor).copy(), indices, updates)


def tensor_scatter_nd_add(tensor: Value, indices: Value, updates: Value) -> Tensor:
    """A tensor with values added at places."""
    return _scattered(np.add.at, to_array(tensor).copy(), indices, updates)


def boolean_mask(tensor: Value, mask: Value, axis: int | None = None) -> Tensor:
    """The values where a mask is true."""
    return Tensor(to_array(tensor)[(slice(None),) * (axis or 0) + (to_array(mask),)])


def where(condition: Value, x: Value = None, y: Value = None) -> Any:
    """The values of `x` where a condition is true, and else of `y`; without both, the places where it is."""
    if x is None:
        array = to_array(condition)
        return Tensor(np.flatnonzero(array)[:, None] if array.ndim == 1 else np.argwhere(array))
    return _chosen(condition, x, y)


@on_values
def _chosen(condition: Value, x: Value, y: Value) -> Tensor:
    return Tensor(np.where(to_array(condition), *alike(x, y)))


def sequence_mask(lengths: Value, maxlen: Value = None, dtype: Kind = "bool") -> Tensor:
    """Whether each place of a row is before its length."""
    array = to_array(lengths)
    width = array.max(initial=0) if maxlen is None else int(maxlen)
    return Tensor((np.arange(width) < array[..., None]).astype(numpy_type(dtype)))


def one_hot(
    indices: Value,
    depth: Value,
    on_value: Value = None,
    off_value: Value = None,
    axis: Value = None,
    dtype: Kind = None,
) -> Tensor:
    """One value at each index, and another elsewhere."""
    is_on = to_array(indices)[..., None] == np.arange(int(depth))
    values = [1.0 if on_value is None else on_value, 0.0 if off_value is None else off_value]
    kind = numpy_type(dtype) or to_array(values[0]).dtype
    return Tensor(np.where(is_on, *(np.asarray(value, kind) for value in values)))


@on_values
def clip_by_value(t: Value, clip_value_min: Value, clip_value_max: Value) -> Tensor:
    """The values, and the bounds for those outside."""
    array, low, high = alike(t, clip_value_min, clip_value_max)
    return Tensor(np.minimum(np.maximum(array, low), high))


def add_n(inputs: Value) -> Any:
    """The sum of tensors."""
    return sum(inputs[1:], inputs[0])


def decode_raw(input_bytes: Value, out_type: DType, fixed_length: Value = None) -> Tensor:
    """The bytes of strings as numbers, of equally long ones, or of all filled up with zeros."""
    texts = to_array(input_bytes)
    if fixed_length is not None:
        width = int(fixed_length)
        parts = [text[:width].ljust(width, b"\0") for text in texts.ravel().tolist()]
    else:
        parts = texts.ravel().tolist()
        width = len(parts[0]) if parts else 0
        if any(len(text) != width for text in parts):
            raise invalid("DecodeRaw requires input strings to all be the same size")
    return Tensor(np.frombuffer(b"".join(parts), numpy_type(out_type)).reshape(*texts.shape, -1 if parts else width))


class TensorArray:
    """Tensors that a loop writes.

    Args:
        dtype: their type.
        size: how many there are at first.
        **options: not used.
    """

    def __init__(self, dtype: Kind, size: Value = 0, **options: Any):
        self.dtype, self._parts = dtype, [None] * int(size)
        self._shape = options.get("element_shape") or ()

    def write(self, index: Value, value: Value) -> TensorArray:
        """With a tensor at a place."""
        place = int(index)
        self._parts += [None] * (place + 1 - len(self._parts))
        self._parts[place] = convert_to_tensor(value, self.dtype)
        return self

    def read(self, index: Value) -> Any:
        """The tensor at a place."""
        return self._parts[int(index)]

    def size(self) -> Tensor:
        """The number of tensors."""
        return Tensor(np.array(len(self._parts), np.int32))

    def stack(self) -> Tensor:
        """All of them along a new axis."""
        return self._all(stack)

    def concat(self) -> Tensor:
        """All of them along their first axis."""
        return self._all(lambda parts: concat(parts, 0))

    def _all(self, join: Callable[[Any], Tensor]) -> Tensor:
        parts = [part for part in self._parts if part is not None]
        return join(parts) if parts else zeros([size or 0 for size in self._shape], self.dtype)
