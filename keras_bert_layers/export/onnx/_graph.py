"""Building a graph of ONNX operations."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers._internal.lazy import LazyModule

onnx = LazyModule("onnx", "onnx")

# Names of the sets of operations: ONNX's own and its table lookups, ONNX Runtime's fused ones, and its text operations.
STANDARD, TABLES, FUSED, TEXT = "", "ai.onnx.ml", "com.microsoft", "ai.onnx.contrib"
# `TensorProto.DataType`.
FLOAT, INT32, INT64, STRING, BOOL = 1, 6, 7, 8, 9
_VERSIONS = {STANDARD: 20, TABLES: 4, FUSED: 1, TEXT: 1}
_IR_VERSION = 10
_NAME = "keras_bert_layers"
_BATCH, _AXES = "batch", ("sequence", "other")


class Answer(NamedTuple):
    """An output of a model: its tensor, type and shape.

    Args:
        tensor: the tensor.
        kind: its type, such as `FLOAT`.
        shape: its axes, the batch first; None for a size that is known only when the model runs.
    """

    tensor: str
    kind: int
    shape: tuple[int | None, ...]


class Graph:
    """Operations and constants; a tensor is named by a string."""

    def __init__(self, outer: Graph | None = None):
        self._nodes: list[Any] = []
        # A branch shares the constants of the graph around it, and its names occur nowhere else in that graph.
        self._constants: dict[str, Any] = {} if outer is None else outer._constants
        self._by_value: dict[Any, str] = {} if outer is None else outer._by_value
        self._names: Iterator[int] = itertools.count() if outer is None else outer._names

    def add(
        self,
        operation: str,
        *inputs: str,
        outputs: int = 1,
        domain: str = STANDARD,
        as_list: bool = False,
        **attributes: Any,
    ) -> Any:
        """Adds an operation.

        Returns:
            The name of its output, or a list of names for several `outputs`.
        """
        number = next(self._names)
        names = [f"{operation}_{number}_{index}" for index in range(outputs)]
        self._nodes.append(onnx.helper.make_node(operation, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 and not as_list else names

    # An operation on strings of onnxruntime-extensions, and one of ONNX Runtime's fused operations.
    text = functools.partialmethod(add, domain=TEXT)
    fused = functools.partialmethod(add, domain=FUSED)

    def choose(self, condition: str, *branches: Callable[[Graph], Sequence[Answer]]) -> list[str]:
        """The outputs of the first of two branches if a scalar is true, or else of the second (ONNX's `If`)."""
        graphs, outputs = [], 0
        for branch in branches:
            graph = Graph(self)
            answers = branch(graph)
            outputs = len(answers)
            shapes = [onnx.helper.make_tensor_value_info(a.tensor, a.kind, a.shape) for a in answers]
            graphs.append(onnx.helper.make_graph(graph._nodes, "branch", [], shapes))
        return self.add("If", condition, outputs=outputs, then_branch=graphs[0], else_branch=graphs[1], as_list=True)

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A constant tensor: integers are int64 and strings are strings; equal small ones are stored once."""
        if isinstance(value, str) or (isinstance(value, list) and value and isinstance(value[0], str)):
            texts = [value] if isinstance(value, str) else value
            shape = [] if isinstance(value, str) else [len(texts)]
            content = [text.encode() for text in texts]

            def make(name: str) -> Any:
                return onnx.helper.make_tensor(name, STRING, shape, content)

            return self._store((tuple(texts), len(shape)), make)
        array = np.asarray(value, dtype or (np.int64 if np.asarray(value).dtype.kind in "iu" else None))
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size < 64 else object()
        return self._store(key, lambda name: onnx.numpy_helper.from_array(array, name))

    def _store(self, key: Any, make: Any) -> str:
        if key not in self._by_value:
            name = f"constant_{len(self._constants)}"
            self._by_value[key] = name
            self._constants[name] = make(name)
        return self._by_value[key]

    def model(self, text: str, answers: Mapping[str, Answer]) -> Any:
        """The `ModelProto`.

        Args:
            text: the name of the input, strings `[batch]`.
            answers: name -> what the model returns.
        """
        helper, names = onnx.helper, (_BATCH, *_AXES)
        for name, answer in answers.items():
            self._nodes.append(helper.make_node("Identity", [answer.tensor], [name]))
        outputs = [
            helper.make_tensor_value_info(name, answer.kind, [axis or names[i] for i, axis in enumerate(answer.shape)])
            for name, answer in answers.items()
        ]
        inputs = [helper.make_tensor_value_info(text, STRING, [_BATCH])]
        graph = helper.make_graph(self._nodes, _NAME, inputs, outputs, list(self._constants.values()))
        versions = [helper.make_opsetid(domain, version) for domain, version in _VERSIONS.items()]
        return helper.make_model(graph, opset_imports=versions, ir_version=_IR_VERSION, producer_name=_NAME)
