"""TensorFlow's functions that take tensors, whole or ragged, and return tensors of values or of places."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from keras_bert_layers._internal.numpy_tensorflow.ragged import RaggedTensor, map_flat
from keras_bert_layers._internal.numpy_tensorflow.tensors import (
    Tensor,
    numpy_type,
    operand,
    string_array,
    to_array,
)
from keras_bert_layers._internal.numpy_tensorflow.types import OBJECT, Kind, Value, as_dtype, dtype_of, invalid

#: A ufunc of NumPy, or a function of arrays.
Function: TypeAlias = Any
#: An axis or several; None for all.
Axis: TypeAlias = Any

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


def on_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of values that takes ragged tensors too; a decorator."""

    @functools.wraps(function)
    def call(*values: Value, **options: Any) -> Any:
        for value in values:
            if type(value) is RaggedTensor:
                return map_flat(functools.partial(function, **options), *values)
        return function(*values, **options)

    return call


def alike(*values: Value) -> list[np.ndarray]:
    """Values as arrays of one type: that of the first tensor or array among them."""
    for value in values:
        if type(value) is Tensor:
            dtype = value.array.dtype
            break
    else:
        dtype = to_array(next((value for value in values if hasattr(value, "dtype")), values[0])).dtype
    return [operand(value, dtype) for value in values]


def _binary(function: Function) -> Callable[..., Any]:
    @on_values
    def call(x: Value, y: Value) -> Tensor:
        return Tensor(function(*alike(x, y)))

    return call


def _unary(function: Function) -> Callable[..., Any]:
    @on_values
    def call(x: Value) -> Tensor:
        array = to_array(x)
        with np.errstate(all="ignore"):
            return Tensor(np.asarray(function(array)).astype(array.dtype, copy=False))

    return call


minimum, maximum, equal, not_equal = map(_binary, (np.minimum, np.maximum, np.equal, np.not_equal))
bitwise_and, bitwise_or, bitwise_xor = map(_binary, (np.bitwise_and, np.bitwise_or, np.bitwise_xor))
left_shift, right_shift = map(_binary, (np.left_shift, np.right_shift))
absolute, exp, tanh, rounded = map(_unary, (np.abs, np.exp, np.tanh, np.round))
sigmoid = _unary(lambda x: 1 / (1 + np.exp(-x)))
softplus = _unary(lambda x: np.logaddexp(x, 0))
relu, relu6 = _unary(lambda x: np.maximum(x, 0)), _unary(lambda x: np.clip(x, 0, 6))
silu, elu = _unary(lambda x: x / (1 + np.exp(-x))), _unary(lambda x: np.where(x > 0, x, np.expm1(x)))


def leaky_relu(features: Value, alpha: float = 0.2) -> Tensor:
    """Negative values times `alpha`."""
    array = to_array(features)
    return Tensor(np.where(array > 0, array, np.asarray(alpha, array.dtype) * array))


def gelu(features: Value, approximate: bool = False) -> Tensor:
    """The values times the normal distribution up to them."""
    array = to_array(features)
    if approximate:
        inner = np.tanh(np.sqrt(2 / np.pi).astype(array.dtype) * (array + np.asarray(0.044715, array.dtype) * array**3))
    else:
        inner = np.vectorize(math.erf, [array.dtype])(array / np.sqrt(2).astype(array.dtype))
    return Tensor(np.asarray(0.5, array.dtype) * array * (1 + inner))


@on_values
def cast(x: Value, dtype: Kind) -> Tensor:
    """The values in another type."""
    array, to = to_array(x), as_dtype(dtype).numpy
    if array.dtype == to:
        return x if type(x) is Tensor else Tensor(array)
    if OBJECT in (array.dtype, to):
        raise invalid(f"Cast of {array.dtype} to {to} is not supported")
    if array.dtype.kind != "f":
        return Tensor(array.astype(to))
    with np.errstate(invalid="ignore", over="ignore"):
        return Tensor(array.astype(to))


def _axis(axis: Axis) -> Any:
    if isinstance(axis, list | tuple):
        return tuple(map(int, axis))
    return None if axis is None else int(axis)


def _lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else dtype.kind != "b" and np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else dtype.kind == "b" or np.iinfo(dtype).max


def _reduction(function: np.ufunc, initial: Callable[[np.dtype], Any]) -> Callable[..., Any]:
    """A reduction; `initial` gives the result of no values."""

    def reduce(input_tensor: Value, axis: Axis = None, keepdims: bool = False) -> Any:
        if isinstance(input_tensor, RaggedTensor):
            return _reduced_rows(function, initial, reduce, input_tensor, axis, keepdims)
        array = to_array(input_tensor)
        start = initial(array.dtype)
        return Tensor(function.reduce(array, _axis(axis), array.dtype, keepdims=keepdims, initial=start))

    return reduce


def _reduced_rows(
    function: np.ufunc,
    initial: Callable[[np.dtype], Any],
    reduce: Callable[..., Any],
    ragged: RaggedTensor,
    axis: Axis,
    keepdims: bool,
) -> Any:
    axis = None if axis is None else axis + ragged.shape.rank * (axis < 0)
    if axis is None:
        return reduce(ragged.flat_values)
    if axis > ragged.ragged_rank or (isinstance(ragged.values, RaggedTensor) and axis > 1):
        return ragged.with_values(reduce(ragged.values, axis - 1, keepdims))
    if axis != 1 or isinstance(ragged.values, RaggedTensor):
        raise NotImplementedError(f"a reduction of a ragged tensor over axis {axis}")
    found = _of_segments(function, initial, ragged.values.array, ragged.rows(), len(ragged))
    return Tensor(found[:, None] if keepdims else found)


reduce_sum, reduce_prod = _reduction(np.add, lambda _: 0), _reduction(np.multiply, lambda _: 1)
reduce_max, reduce_min = _reduction(np.maximum, _lowest), _reduction(np.minimum, _highest)
reduce_any, reduce_all = _reduction(np.logical_or, lambda _: False), _reduction(np.logical_and, lambda _: True)


def reduce_logsumexp(input_tensor: Value, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of the exponentials."""
    array = to_array(input_tensor)
    most = np.max(array, _axis(axis), keepdims=True, initial=_lowest(array.dtype))
    most = np.where(np.isfinite(most), most, 0)
    with np.errstate(divide="ignore"):
        found = np.log(np.sum(np.exp(array - most), _axis(axis), keepdims=True)) + most
    return Tensor(found if keepdims else np.squeeze(found, _axis(axis)))


def softmax(logits: Value, axis: int = -1) -> Tensor:
    """Probabilities by their logits."""
    array = to_array(logits)
    found = np.exp(array - np.max(array, axis, keepdims=True, initial=_lowest(array.dtype)))
    return Tensor(found / np.sum(found, axis, keepdims=True))


def count_nonzero(input: Value, axis: Axis = None, keepdims: Value = None, dtype: Kind = "int64") -> Tensor:
    """The number of values that are not 0."""
    found = np.count_nonzero(to_array(input), _axis(axis), keepdims=bool(keepdims))
    return Tensor(np.asarray(found, numpy_type(dtype)))


def _extreme(function: Callable[..., Any]) -> Callable[..., Tensor]:
    def call(input: Value, axis: Axis = None, output_type: Kind = "int64") -> Tensor:
        array = to_array(input)
        try:
            return Tensor(np.asarray(function(array, _axis(axis) or 0)).astype(numpy_type(output_type)))
        except ValueError as error:
            raise invalid(f"Reduction axis {axis} is empty in shape {list(array.shape)}") from error

    return call


argmax, argmin = _extreme(np.argmax), _extreme(np.argmin)


def _order(array: np.ndarray, axis: int, *, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(array, axis, kind="stable")
    # Of equal values, the first comes first, as before.
    return array.shape[axis] - 1 - np.flip(np.argsort(np.flip(array, axis), axis, kind="stable"), axis)


def argsort(values: Value, axis: int = -1, direction: str = "ASCENDING", stable: bool = False) -> Tensor:
    """The places of the values in their order, int32."""
    return Tensor(_order(to_array(values), axis, descending=direction == "DESCENDING").astype(_INT32))


class TopK(tuple[Any, Any]):
    """The largest values, and their indices."""

    values = property(lambda self: self[0])
    indices = property(lambda self: self[1])


def top_k(input: Value, k: Value = 1, sorted: bool = True, index_type: Kind = "int32") -> TopK:
    """The `k` largest values of the last axis, and their indices; of equal ones, the first."""
    array, k = to_array(input), int(k)
    if k > array.shape[-1]:
        raise invalid(f"input must have at least k columns. Had {array.shape[-1]}, needed {k}")
    order = _order(array, -1, descending=True)[..., :k]
    return TopK((Tensor(np.take_along_axis(array, order, -1)), Tensor(order.astype(numpy_type(index_type)))))


def cumsum(x: Value, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The sums of the values up to each; `exclusive` without it, `reverse` from the end."""
    array = to_array(x)
    axis = int(axis)
    array = np.flip(array, axis) if reverse else array
    found = np.cumsum(array, axis, array.dtype)
    if exclusive:
        shifted = np.zeros_like(found)
        shifted.swapaxes(0, axis)[1:] = found.swapaxes(0, axis)[:-1]
        found = shifted
    return Tensor(np.flip(found, axis) if reverse else found)


def searchsorted(sorted_sequence: Value, values: Value, side: Value = "left", out_type: Kind = "int32") -> Tensor:
    """Where values would be in a sorted sequence; in each row of one."""
    table, wanted = alike(sorted_sequence, values)
    to = numpy_type(out_type)
    if table.ndim == 1:
        return Tensor(np.searchsorted(table, wanted, side).astype(to))
    rows = zip(table.reshape(-1, table.shape[-1]), wanted.reshape(-1, wanted.shape[-1]), strict=True)
    found = [np.searchsorted(row, each, side) for row, each in rows]
    return Tensor(np.array(found, to).reshape(wanted.shape))


def bincount(
    arr: Value, weights: Value = None, minlength: Value = None, maxlength: Value = None, dtype: Kind = "int32"
) -> Tensor:
    """How often each integer from 0 on is there."""
    counts = np.bincount(to_array(arr).ravel(), minlength=0 if minlength is None else int(minlength))
    return Tensor(counts[: None if maxlength is None else int(maxlength)].astype(numpy_type(dtype)))


def _of_segments(
    function: np.ufunc, initial: Callable[[np.dtype], Any], data: np.ndarray, ids: np.ndarray, count: int
) -> np.ndarray:
    result = np.full((count, *data.shape[ids.ndim :]), initial(data.dtype), data.dtype)
    ids, data = ids.ravel(), data.reshape(-1, *data.shape[ids.ndim :])
    if ids.size and ids.min() < 0:
        ids, data = ids[ids >= 0], data[ids >= 0]
    if ids.size and ids.max() >= count:
        raise invalid(f"segment_ids has {ids.max()}, which is not below the {count} segments")
    function.at(result, ids, data)
    return result


def _unsorted_segments(function: np.ufunc, initial: Callable[[np.dtype], Any]) -> Callable[..., Tensor]:
    def call(data: Value, segment_ids: Value, num_segments: Value) -> Tensor:
        return Tensor(_of_segments(function, initial, to_array(data), to_array(segment_ids), int(num_segments)))

    return call


def _segments(function: np.ufunc, initial: Callable[[np.dtype], Any]) -> Callable[..., Tensor]:
    def call(data: Value, segment_ids: Value) -> Tensor:
        values, ids = to_array(data), to_array(segment_ids)
        count = int(ids[-1]) + 1 if ids.size else 0
        found = _of_segments(function, initial, values, ids, count)
        found[np.bincount(ids, minlength=count) == 0] = 0
        return Tensor(found)

    return call


def _mean_of(sums: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(data: Value, segment_ids: Value, *num_segments: Value) -> Tensor:
        values, ids = to_array(data), to_array(segment_ids)
        counts = sums(np.ones(ids.shape, values.dtype), ids, *num_segments).array
        found = sums(values, ids, *num_segments).array
        return Tensor(found / np.maximum(counts, 1).reshape(-1, *(1,) * (found.ndim - 1)))

    return call


def _zero(_: np.dtype) -> int:
    return 0


def _smallest(dtype: np.dtype) -> Any:
    return dtype_of(dtype).min


def _largest(dtype: np.dtype) -> Any:
    return dtype_of(dtype).max


unsorted_segment_sum, segment_sum = _unsorted_segments(np.add, _zero), _segments(np.add, _zero)
unsorted_segment_max, segment_max = _unsorted_segments(np.maximum, _smallest), _segments(np.maximum, _smallest)
unsorted_segment_min, segment_min = _unsorted_segments(np.minimum, _largest), _segments(np.minimum, _largest)
unsorted_segment_mean, segment_mean = _mean_of(unsorted_segment_sum), _mean_of(segment_sum)


def invert_permutation(x: Value) -> Tensor:
    """The place of each index."""
    array = to_array(x)
    found = np.empty_like(array)
    found[array] = np.arange(len(array), dtype=array.dtype)
    return Tensor(found)


def bitcast(input: Value, type: Kind) -> Tensor:
    """The same bits as another type of the same size."""
    return Tensor(to_array(input).view(numpy_type(type)))


def unique(x: Value, out_idx: Kind = "int32") -> tuple[Tensor, Tensor]:
    """The different values, each where it is first, and of each value which of them it is."""
    array = to_array(x)
    if array.dtype == OBJECT:
        values = array.tolist()
        places = {value: place for place, value in enumerate(dict.fromkeys(values))}
        index = np.fromiter(map(places.__getitem__, values), numpy_type(out_idx), len(values))
        return Tensor(string_array(list(places))), Tensor(index)
    found, first, index = np.unique(array, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), numpy_type(out_idx))
    place[order] = np.arange(len(order))
    return Tensor(found[order]), Tensor(place[index.ravel()])


def bucketize(input: Value, boundaries: Value) -> Tensor:
    """Between which boundaries each value is, int32."""
    array = to_array(input)
    return Tensor(np.searchsorted(np.asarray(boundaries, np.float32), array, "right").astype(_INT32))
