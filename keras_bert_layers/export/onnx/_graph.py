"""Building a graph of ONNX operations with tensors that have NumPy's operators."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers._internal.lazy import LazyModule

onnx = LazyModule("onnx", "onnx")

# Names of the sets of operations: ONNX's own and its table lookups, ONNX Runtime's fused ones, and its text operations.
STANDARD, TABLES, FUSED, TEXT = "", "ai.onnx.ml", "com.microsoft", "ai.onnx.contrib"
# `TensorProto.DataType`.
FLOAT, UINT8, INT8, UINT16, INT32, INT64, STRING, BOOL = 1, 2, 3, 4, 6, 7, 8, 9
_NUMPY = {
    **{FLOAT: np.float32, UINT8: np.uint8, INT8: np.int8, UINT16: np.uint16, INT32: np.int32, INT64: np.int64},
    BOOL: np.bool_,
}
_VERSIONS = {STANDARD: 20, TABLES: 4, FUSED: 1, TEXT: 1}
_IR_VERSION = 10
_NAME = "keras_bert_layers"
_BATCH, _AXES = "batch", ("sequence", "other")
# `Slice` up to the end of an axis.
_END = 2**31 - 1


class Tensor:
    """A tensor of a graph, by its name; numbers and strings beside it become constants of its type.

    Args:
        graph: the graph.
        name: the tensor's name.
        kind: its type, such as `FLOAT`.
    """

    def __init__(self, graph: Graph, name: str, kind: int):
        self.graph, self.name, self.kind = graph, name, kind

    def _with(self, operation: str, other: Any, kind: int | None = None, *, swapped: bool = False) -> Tensor:
        pair = [self, self.graph.constant(other, self.kind)]
        return self.graph.add(operation, *(pair[::-1] if swapped else pair), kind=kind or self.kind)

    __add__ = functools.partialmethod(_with, "Add")
    __radd__ = functools.partialmethod(_with, "Add", swapped=True)
    __sub__ = functools.partialmethod(_with, "Sub")
    __rsub__ = functools.partialmethod(_with, "Sub", swapped=True)
    __mul__ = functools.partialmethod(_with, "Mul")
    __truediv__ = functools.partialmethod(_with, "Div")
    __rtruediv__ = functools.partialmethod(_with, "Div", swapped=True)
    __floordiv__ = functools.partialmethod(_with, "Div")  # of integers that are not negative
    __and__ = functools.partialmethod(_with, "And")
    __or__ = functools.partialmethod(_with, "Or")
    __matmul__ = functools.partialmethod(_with, "MatMul")
    __lt__ = functools.partialmethod(_with, "Less", kind=BOOL)
    __le__ = functools.partialmethod(_with, "LessOrEqual", kind=BOOL)
    __gt__ = functools.partialmethod(_with, "Greater", kind=BOOL)
    __ge__ = functools.partialmethod(_with, "GreaterOrEqual", kind=BOOL)
    minimum = functools.partialmethod(_with, "Min")
    maximum = functools.partialmethod(_with, "Max")
    equals = functools.partialmethod(_with, "Equal", kind=BOOL)

    def __invert__(self) -> Tensor:
        return self.graph.add("Not", self)

    def __neg__(self) -> Tensor:
        return self.graph.add("Neg", self)

    def cast(self, kind: int) -> Tensor:
        """The same numbers in another type."""
        return self if kind == self.kind else self.graph.add("Cast", self, to=kind, kind=kind)

    def where(self, chosen: Any, other: Any) -> Tensor:
        """`chosen` where this is true, and `other` elsewhere. At least one of the two is a tensor."""
        kind = chosen.kind if isinstance(chosen, Tensor) else other.kind
        values = self.graph.constant(chosen, kind), self.graph.constant(other, kind)
        return self.graph.add("Where", self, *values, kind=kind)

    def take(self, indices: Any, axis: int = 0) -> Tensor:
        """The slices at these indices of an axis; the indices' shape replaces the axis."""
        return self.graph.add("Gather", self, self.graph.constant(indices, INT64), axis=axis)

    def slice(self, first: Any = 0, end: Any = _END, axis: int = 0) -> Tensor:
        """From `first` to before `end`, integers or int64 tensors `[1]`."""
        bounds = (value if isinstance(value, Tensor) else self.graph.constant([value]) for value in (first, end))
        return self.graph.add("Slice", self, *bounds, self.graph.constant([axis]))

    def compress(self, chosen: Tensor, axis: int | None = None) -> Tensor:
        """The slices of an axis where a vector is true; without `axis`, the values where a tensor is true."""
        options: dict[str, Any] = {} if axis is None else {"axis": axis}
        return self.graph.add("Compress", self, chosen, **options)

    def reduced(self, operation: str, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        """The `"Sum"`, `"Max"`, `"Min"` or another reduction over an axis, or over all."""
        axes = [] if axis is None else [self.graph.constant([axis])]
        return self.graph.add(f"Reduce{operation}", self, *axes, keepdims=int(keepdims))

    def cumsum(self, axis: int = 0, *, exclusive: bool = False) -> Tensor:
        """The sums of the values up to each one."""
        return self.graph.add("CumSum", self, self.graph.constant(axis), exclusive=int(exclusive))

    def column(self, axis: int = 1) -> Tensor:
        """With a further axis of size 1."""
        return self.graph.add("Unsqueeze", self, self.graph.constant([axis]))

    def reshape(self, *sizes: Any) -> Tensor:
        """With other sizes, of which one may be -1: integers or int64 scalars; or all of them as a vector."""
        if len(sizes) == 1 and isinstance(sizes[0], Tensor):
            return self.graph.add("Reshape", self, sizes[0], allowzero=1)
        parts = [self.graph.constant(size, INT64).column(0) for size in sizes]
        return self.graph.add("Reshape", self, self.graph.concat(parts))

    def size(self, axis: int | None = None) -> Tensor:
        """How many values there are, or the size of an axis; an int64 scalar."""
        if axis is None:
            return self.graph.add("Size", self, kind=INT64)
        return self.shape().take(axis)

    def shape(self) -> Tensor:
        """All sizes, int64 `[axes]`."""
        return self.graph.add("Shape", self, kind=INT64)

    def filled(self, value: object, kind: int) -> Tensor:
        """A tensor of the same shape that has one value."""
        return self.graph.add("Expand", self.graph.constant(value, kind), self.shape())

    def scattered(self, indices: Tensor, values: Tensor, reduction: str = "none") -> Tensor:
        """With the values at some indices of a vector replaced; or with theirs added, or the `"max"` or `"min"`."""
        return self.graph.add("ScatterElements", self, indices, values, reduction=reduction)


class Answer(NamedTuple):
    """An output of a model.

    Args:
        tensor: the tensor.
        shape: its axes, the batch first; None for a size that is known only when the model runs.
    """

    tensor: Tensor
    shape: tuple[int | None, ...]


class Graph:
    """Operations and constants."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._by_value: dict[Any, Tensor] = {}
        self._num_nodes = 0
        self._times_named: Counter[str] = Counter()
        self._functions: dict[str, tuple[list[Any], str]] = {}

    def add(
        self,
        operation: str,
        *inputs: Tensor | None,
        outputs: int | Sequence[int] = 1,
        domain: str = STANDARD,
        kind: int | None = None,
        name: str = "",
        **attributes: Any,
    ) -> Any:
        """Adds an operation.

        Args:
            operation: its name.
            *inputs: tensors; None for one that is left out.
            outputs: how many outputs it has, or the type of each.
            domain: the set of operations that it is from.
            kind: the type of the outputs; None for that of the first input.
            name: the node's name, which errors show, with a number if there are several of it.
            **attributes: its attributes.

        Returns:
            The output, or a list of several.
        """
        self._num_nodes += 1
        first = next((tensor.kind for tensor in inputs if tensor is not None), FLOAT)
        kinds = [kind or first] * outputs if isinstance(outputs, int) else list(outputs)
        found = [Tensor(self, f"{operation}_{self._num_nodes}_{index}", kind) for index, kind in enumerate(kinds)]
        self._times_named[name] += 1
        if self._times_named[name] > 1:
            name = name and f"{name} ({self._times_named[name]})"
        names = ["" if tensor is None else tensor.name for tensor in inputs]
        results = [tensor.name for tensor in found]
        self._nodes.append(onnx.helper.make_node(operation, names, results, domain=domain, name=name, **attributes))
        return found[0] if outputs == 1 else found

    # An operation on strings of onnxruntime-extensions, and one of ONNX Runtime's fused operations.
    text = functools.partialmethod(add, domain=TEXT)
    fused = functools.partialmethod(add, domain=FUSED)

    def input(self, name: str, kind: int = STRING) -> Tensor:
        """The input of a name."""
        return Tensor(self, name, kind)

    def concat(self, parts: Sequence[Tensor], axis: int = 0) -> Tensor:
        """Tensors one after the other."""
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=axis)

    def range(self, size: Tensor) -> Tensor:
        """0, 1, 2, ..., int64 `[size]`."""
        return self.add("Range", self.constant(0), size, self.constant(1))

    def choose(self, condition: Tensor, *branches: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
        """The results of the first of two branches if a scalar is true, or else of the second (ONNX's `If`)."""
        made = [self._branch("branch", branch) for branch in branches]
        kinds = [tensor.kind for tensor in made[0][1]]
        options = dict(zip(("then_branch", "else_branch"), (graph for graph, _ in made), strict=True))
        found = self.add("If", condition, outputs=kinds, **options)
        return found if isinstance(found, list) else [found]

    def scan(
        self,
        step: Callable[..., tuple[Tensor, ...]],
        start: Tensor,
        *values: Tensor,
        axes: int = 2,
        reverse: bool = False,
    ) -> Any:
        """What a step returns for each position, along the second axis `[B, S, ...]` of some values (ONNX's `Scan`).

        Args:
            step: from what is carried and the values at a position `[B, ...]`, to what is carried on and the results.
            start: what is carried to the first position.
            *values: `[B, S, ...]` each.
            axes: of what is carried, and of the results.
            reverse: whether it begins with the last position.

        Returns:
            `[B, S, ...]`, or a list of several.
        """
        self._num_nodes += 1
        places = [
            Tensor(self, f"step_{self._num_nodes}_{index}", each.kind) for index, each in enumerate((start, *values))
        ]
        body, (_, *results) = self._branch("step", lambda: step(*places), places, axes)
        count = len(results)
        directions = {"scan_input_axes": [1] * len(values), "scan_input_directions": [int(reverse)] * len(values)}
        directions |= {"scan_output_axes": [1] * count, "scan_output_directions": [int(reverse)] * count}
        options = {"body": body, "num_scan_inputs": len(values), **directions}
        kinds = [start.kind, *(result.kind for result in results)]
        found = self.add("Scan", start, *values, outputs=kinds, **options)[1:]
        return found[0] if count == 1 else found

    def repeat(self, times: Tensor, step: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
        """What a step makes of its own result, so many times, from `start` on (ONNX's `Loop`); sizes may change."""
        self._num_nodes += 1
        kinds = INT64, BOOL, start.kind
        places = [Tensor(self, f"repeated_{self._num_nodes}_{index}", kind) for index, kind in enumerate(kinds)]
        body, _ = self._branch("repeated", lambda: [places[1], step(places[2])], places)
        for scalar in body.input[:2]:
            scalar.type.tensor_type.shape.SetInParent()  # says that there are no axes
        found: Tensor = self.add("Loop", times, None, start, kind=start.kind, body=body)
        return found

    def function(self, name: str, make: Callable[[], Tensor]) -> None:
        """Stores operations that the graph does not run, as a function of the file.

        Its inputs are those of the graph, and the constants that it shares with it.
        """
        outside, self._nodes = self._nodes, []
        result = make()
        nodes, self._nodes = self._nodes, outside
        self._functions[name] = nodes, result.name

    def _branch(
        self, name: str, make: Callable[[], Sequence[Tensor]], inputs: Sequence[Tensor] = (), axes: int | None = None
    ) -> tuple[Any, Sequence[Tensor]]:
        """A graph within this one, which shares its tensors and constants, and its results."""
        outside, self._nodes = self._nodes, []
        results = list(make())
        # A result must be made by the graph that returns it.
        results = [self.add("Identity", result) for result in results]
        made = [
            [onnx.helper.make_tensor_value_info(tensor.name, tensor.kind, shape) for tensor in tensors]
            for tensors, shape in ((inputs, None), (results, None if axes is None else [None] * axes))
        ]
        graph = onnx.helper.make_graph(self._nodes, name, *made)
        self._nodes = outside
        return graph, results

    def constant(self, value: Any, kind: int | None = None) -> Tensor:
        """A constant tensor; a tensor as it is.

        Args:
            value: a number, a string, or an array or list of them.
            kind: its type; None for that of an array, and int64 for integers.
        """
        if isinstance(value, Tensor):
            return value
        if (
            kind == STRING
            or isinstance(value, str)
            or (isinstance(value, list) and value and isinstance(value[0], str))
        ):
            texts = [value] if isinstance(value, str | bytes) else value
            shape = [] if isinstance(value, str | bytes) else [len(texts)]
            content = [text if isinstance(text, bytes) else text.encode() for text in texts]

            def make(name: str) -> Any:
                # `make_tensor` would drop a NUL at the end of a string.
                return onnx.TensorProto(name=name, data_type=STRING, dims=shape, string_data=content)

            return self._store((tuple(texts), len(shape)), make, STRING)
        array = np.asarray(value, _NUMPY.get(kind or 0))
        if kind is None and array.dtype.kind in "iu" and not isinstance(value, np.ndarray):
            array = array.astype(np.int64)
        kind = kind or next(each for each, dtype in _NUMPY.items() if array.dtype == dtype)
        key = array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).digest()
        return self._store(key, lambda name: onnx.numpy_helper.from_array(array, name), kind)

    def named(self, name: str, value: np.ndarray) -> Tensor:
        """A constant of numbers that has a name of its own in the file."""
        self._constants[name] = as_constant(name, value)
        return Tensor(self, name, self._constants[name].data_type)

    def weight(self, variable: Tensor, value: np.ndarray) -> Tensor:
        """A large constant that several operations share, stored once for each variable."""
        return self._store(("variable", id(variable)), lambda name: onnx.numpy_helper.from_array(value, name), FLOAT)

    def _store(self, key: Any, make: Callable[[str], Any], kind: int) -> Tensor:
        if key not in self._by_value:
            name = f"constant_{len(self._constants)}"
            self._by_value[key] = Tensor(self, name, kind)
            self._constants[name] = make(name)
        return self._by_value[key]

    def model(
        self, inputs: Mapping[str, Sequence[int | None]], answers: Mapping[str, Answer], kind: int = STRING
    ) -> Any:
        """The `ModelProto`.

        Args:
            inputs: name -> shape of each input.
            answers: name -> what the model returns.
            kind: the type of the inputs.
        """
        helper, names = onnx.helper, (_BATCH, *_AXES)
        for name, answer in answers.items():
            self._nodes.append(helper.make_node("Identity", [answer.tensor.name], [name]))

        read = set(_read_by(self._nodes))

        def described(name: str, kind: int, shape: Sequence[int | None]) -> Any:
            return helper.make_tensor_value_info(name, kind, [axis or names[i] for i, axis in enumerate(shape)])

        graph = helper.make_graph(
            self._nodes,
            _NAME,
            [described(name, kind, shape) for name, shape in inputs.items()],
            [described(name, answer.tensor.kind, answer.shape) for name, answer in answers.items()],
            [constant for name, constant in self._constants.items() if name in read],
        )
        versions = [helper.make_opsetid(domain, version) for domain, version in _VERSIONS.items()]
        functions = [self._as_function(name, inputs, read, versions) for name in self._functions]
        options = {"opset_imports": versions, "functions": functions}
        return helper.make_model(graph, **options, ir_version=_IR_VERSION, producer_name=_NAME)

    def _as_function(self, name: str, inputs: Iterable[str], read: set[str], versions: Any) -> Any:
        """The `FunctionProto` of `function`; constants that the graph does not read are operations of it."""
        nodes, result = self._functions[name]
        constants = dict.fromkeys(used for used in _read_by(nodes) if used in self._constants)
        own = [
            onnx.helper.make_node("Constant", [], [used], value=self._constants[used])
            for used in constants
            if used not in read
        ]
        inputs = [*inputs, *(used for used in constants if used in read)]
        return onnx.helper.make_function(_NAME, name, inputs, [result], [*own, *nodes], versions)


def as_constant(name: str, value: np.ndarray) -> Any:
    """The `TensorProto` of an array of numbers."""
    return onnx.numpy_helper.from_array(np.ascontiguousarray(value), name)


def _read_by(nodes: Iterable[Any]) -> Iterator[str]:
    """The names of what operations read, those of graphs within them included."""
    for node in nodes:
        yield from node.input
        for attribute in node.attribute:
            yield from _read_by(attribute.g.node)
