"""`tf.data.Dataset` in NumPy: what makes batches, and reads them ahead in a thread."""

from __future__ import annotations

import contextlib
import contextvars
import queue
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from keras import tree

from keras_bert_layers._internal.lazy import not_installed
from keras_bert_layers._internal.numpy_tensorflow.ragged import RaggedTensor, RaggedTensorSpec
from keras_bert_layers._internal.numpy_tensorflow.tensors import Tensor, convert_to_tensor
from keras_bert_layers._internal.numpy_tensorflow.types import TensorSpec

AUTOTUNE = INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2
# Batches that are made while a step is computed.
READ_AHEAD = 2


class Options(types.SimpleNamespace):
    """Options, none of which changes anything here."""

    def __init__(self) -> None:
        super().__init__(experimental_optimization=types.SimpleNamespace())


class _Named(type):
    """A class without some of TensorFlow's methods, which raise ModuleNotFoundError."""

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(name) if name.startswith("_") else not_installed(f"tf.data.Dataset.{name}")


class Dataset(metaclass=_Named):
    """Elements one after the other: tensors, or tuples and dictionaries of them.

    Args:
        make: makes an iterator of them from the first one on.
        length: their number, or `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`.
        spec: their `element_spec`; None to find it in the first one.
        columns: what they are the rows of, if they are.
    """

    def __init__(
        self,
        make: Callable[[], Iterator[Any]],
        length: int = UNKNOWN_CARDINALITY,
        spec: Any = None,
        columns: Any = None,
    ):
        self._make, self._length, self._spec, self._columns = make, length, spec, columns

    def __iter__(self) -> Iterator[Any]:
        return self._make()

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name)

    @property
    def element_spec(self) -> Any:
        """The specs of an element."""
        if self._spec is None:
            self._spec = tree.map_structure(_spec_of, next(self._make()))
        return self._spec

    def cardinality(self) -> np.int64:
        """The number of elements, or one of the two negative constants."""
        return np.int64(self._length)

    @classmethod
    def from_tensor_slices(cls, columns: Any) -> Dataset:
        """A dataset of the rows of columns."""
        columns = _as_tensors(columns)
        size = _num_rows(columns)
        return cls(lambda: (_rows(columns, row) for row in range(size)), size, columns=columns)

    @classmethod
    def range(cls, *bounds: Any) -> Dataset:
        """A dataset of int64 scalars, as of Python's `range`."""
        numbers = range(*map(int, bounds))
        return cls(lambda: (Tensor(np.int64(number)) for number in numbers), len(numbers), columns=numbers)

    @classmethod
    def from_generator(cls, generator: Callable[..., Any], output_signature: Any, args: Sequence[Any] = ()) -> Dataset:
        """A dataset of what `generator(*args)` yields, in these dtypes."""

        def made() -> Iterator[Any]:
            arguments = [np.asarray(argument)[()] for argument in args]
            for element in generator(*arguments):
                yield _in_form(element, output_signature)

        return cls(made, spec=output_signature)

    @classmethod
    def zip(cls, *datasets: Dataset) -> Dataset:
        """A dataset of tuples of the elements of several."""
        known = [dataset._length for dataset in datasets if dataset._length != INFINITE_CARDINALITY]
        return cls(lambda: zip(*datasets, strict=False), min(known, default=INFINITE_CARDINALITY))

    def apply(self, function: Callable[[Dataset], Dataset]) -> Dataset:
        """`function` of this dataset."""
        return function(self)

    def options(self) -> Options:
        """Options."""
        return Options()

    def with_options(self, options: Options) -> Dataset:
        """The same dataset."""
        return self

    def map(self, function: Callable[..., Any], num_parallel_calls: int | None = None) -> Dataset:
        """A dataset of `function` of each element, of the parts of each that is a tuple."""

        def mapped() -> Iterator[Any]:
            for element in self:
                yield _called(function, element)

        return Dataset(mapped, self._length)

    def flat_map(self, function: Callable[..., Dataset]) -> Dataset:
        """A dataset of the elements of the dataset that `function` makes of each element."""

        def flat() -> Iterator[Any]:
            for element in self:
                yield from _called(function, element)

        return Dataset(flat)

    def batch(self, size: Any) -> Dataset:
        """A dataset of so many elements at a time, stacked; of fewer at the end."""
        size = int(size)
        length = -(-self._length // size) if self._length >= 0 else self._length
        if self._columns is not None:
            columns, bounds = self._columns, range(0, self._length, size)
            rows = _numbers if isinstance(columns, range) else _rows
            return Dataset(lambda: (rows(columns, slice(start, start + size)) for start in bounds), length)

        def batches() -> Iterator[Any]:
            elements: list[Any] = []
            for element in self:
                elements.append(element)
                if len(elements) == size:
                    yield tree.map_structure(_stacked, *elements)
                    elements = []
            if elements:
                yield tree.map_structure(_stacked, *elements)

        return Dataset(batches, length)

    def rebatch(self, size: int) -> Dataset:
        """A dataset of batches of another size, the same rows in the same order."""

        def batches() -> Iterator[Any]:
            rest = None
            for batch in self:
                rest = batch if rest is None else tree.map_structure(_concatenated, rest, batch)
                while _num_rows(rest) >= size:
                    yield _rows(rest, slice(size))
                    rest = _rows(rest, slice(size, None))
            if rest is not None and _num_rows(rest):
                yield rest

        return Dataset(batches)

    def prefetch(self, size: int) -> Dataset:
        """The same dataset; its elements are made ahead of time, in a thread."""
        return Dataset(lambda: _read_ahead(self), self._length, self._spec)


def assert_cardinality(length: int) -> Callable[[Dataset], Dataset]:
    """A function that gives a dataset its length."""
    return lambda dataset: Dataset(dataset._make, int(length), dataset._spec)


experimental = types.SimpleNamespace(assert_cardinality=assert_cardinality)


def _read_ahead(elements: Dataset) -> Iterator[Any]:
    """Yields the elements, which a thread makes; what it raises is raised here.

    The thread ends with this iterator, after the element that it is making: another one may read the same source.
    """
    made: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(READ_AHEAD)
    is_over = threading.Event()

    def give(*result: Any) -> None:
        while not is_over.is_set():
            with contextlib.suppress(queue.Full):
                made.put(result, timeout=0.1)
                return

    def read() -> None:
        try:
            for element in elements:
                give(element, None)
                if is_over.is_set():
                    return
            give(None, StopIteration())
        except BaseException as error:  # raised to whoever reads the elements
            give(None, error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(read,), daemon=True)
    thread.start()
    try:
        while True:
            element, error = made.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield element
    finally:
        is_over.set()
        if thread is not threading.current_thread():
            thread.join()


def _as_tensors(value: Any) -> Any:
    """Tensors in tuples and dictionaries; a list is a tensor."""
    if isinstance(value, tuple):
        return tuple(map(_as_tensors, value))
    if isinstance(value, dict):
        return {name: _as_tensors(part) for name, part in value.items()}
    return value if isinstance(value, RaggedTensor) else convert_to_tensor(value)


def _called(function: Callable[..., Any], element: Any) -> Any:
    return function(*element) if isinstance(element, tuple) else function(element)


def _rows(columns: Any, rows: Any) -> Any:
    return tree.map_structure(lambda column: column[rows], columns)


def _numbers(numbers: range, rows: slice) -> Tensor:
    return Tensor(np.array(numbers[rows], np.int64))


def _num_rows(columns: Any) -> int:
    return len(tree.flatten(columns)[0])


def _stacked(*parts: Any) -> Any:
    return Tensor(np.stack([part.numpy() for part in parts]))


def _concatenated(*parts: Any) -> Any:
    return Tensor(np.concatenate([part.numpy() for part in parts]))


def _in_form(value: Any, spec: Any) -> Any:
    """What a generator yielded, in the dtypes of a signature."""
    if isinstance(spec, tuple | list):
        return tuple(_in_form(*pair) for pair in zip(value, spec, strict=True))
    if isinstance(spec, dict):
        return {name: _in_form(value[name], part) for name, part in spec.items()}
    return value if isinstance(value, RaggedTensor) else convert_to_tensor(value, spec.dtype)


def _spec_of(tensor: Any) -> Any:
    """The spec of tensors with any number of rows."""
    if isinstance(tensor, RaggedTensor):
        return RaggedTensorSpec([None, None], tensor.dtype, ragged_rank=1)
    shape = [None, *tensor.shape[1:]] if tensor.shape.rank else []
    return TensorSpec(shape, tensor.dtype)
