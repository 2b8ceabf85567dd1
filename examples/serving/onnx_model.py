"""One ONNX file that takes texts: `export(path, format="onnx")`. It answers as an `ExportedModel` does.

It needs onnxruntime and onnxruntime-extensions, and no TensorFlow.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime_extensions import get_library_path

from keras_bert_layers.export.json_request import RequestError, arrays
from keras_bert_layers.export.signature import strings_for_onnx

SIGNATURE = "serving_default"
METHOD = "tensorflow/serving/predict"
DTYPES = {"tensor(string)": "DT_STRING", "tensor(float)": "DT_FLOAT", "tensor(int32)": "DT_INT32"}


class OnnxModel:
    """An ONNX file, warmed up by empty texts.

    It is loaded twice. One session uses all cores for each operation: a single text is answered soonest. The other uses
    one core, and is called from as many threads as there are cores: many texts take the least work, as nothing waits
    for another core within a text, and nothing is padded.

    Args:
        path: the file.
        number: its version.

    Attributes:
        signature_def: its one signature, as TensorFlow Serving's `/metadata` has it.
        card: the metadata of the file.
        max_length: the tokens that the model reads of a text.
    """

    def __init__(self, path: Path, number: int):
        self.number = number
        self._cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._all_cores, self._one_core = _session(path, self._cores), _session(path, 1)
        self._threads = ThreadPoolExecutor(self._cores, thread_name_prefix="text")
        self.card: dict[str, Any] = json.loads(self._one_core.get_modelmeta().custom_metadata_map["model_card"])
        self.max_length: int = self.card["preprocessing"]["max_length"]
        inputs, outputs = self._one_core.get_inputs(), self._one_core.get_outputs()
        self._inputs = {each.name: ((None,) * len(each.shape), "string") for each in inputs}
        self._names = [output.name for output in outputs]
        signature = {"inputs": _tensors(inputs), "outputs": _tensors(outputs), "method_name": METHOD}
        self.signature_def = {"signature_def": {SIGNATURE: signature}}
        for session in (self._all_cores, self._one_core):
            self._answer_to([b"" if len(shape) == 1 else [b""] for shape, _ in self._inputs.values()], session)

    def check(self, signature: str, inputs: Any) -> dict[str, np.ndarray]:
        """The texts of a request, as `ExportedModel.check`.

        Raises:
            RequestError: they are not texts, or the request is for something that an ONNX file does not have.
        """
        if signature != SIGNATURE:
            raise RequestError(f"signature_name must be {SIGNATURE!r} for an ONNX file. Received: {signature[:60]!r}")
        return arrays(signature, inputs, {SIGNATURE: self._inputs})

    def answer(self, signature: str, inputs: dict[str, np.ndarray]) -> list[dict[str, Any]]:
        """The answers, one dictionary of JSON values per row.

        The longest texts start first, so that all end together.
        """
        given = list(zip(*(inputs[name].tolist() for name in self._inputs), strict=True))
        if len(given) < self._cores:
            return [self._answer_to(row, self._all_cores) for row in given]
        order = sorted(range(len(given)), key=lambda index: len(b"".join(_texts(given[index]))), reverse=True)
        answers = dict(zip(order, self._threads.map(self._answer_to, (given[index] for index in order)), strict=True))
        return [answers[index] for index in range(len(given))]

    def _answer_to(self, row: Sequence[Any], session: Any = None) -> dict[str, Any]:
        columns = {name: strings_for_onnx([_as_string(value)]) for name, value in zip(self._inputs, row, strict=True)}
        outputs = (session or self._one_core).run(None, columns)
        return {
            name: column[0] if isinstance(column[0], str) else column[0].tolist()
            for name, column in zip(self._names, outputs, strict=True)
        }

    def inputs_of(self, signature: str) -> list[str]:
        """The names of a signature's inputs; none if there is no such signature."""
        return sorted(self._inputs) if signature == SIGNATURE else []

    def outputs_of(self, signature: str) -> list[str]:
        """The names of a signature's outputs; none if there is no such signature."""
        return sorted(self._names) if signature == SIGNATURE else []


def _texts(row: Sequence[Any]) -> Iterator[bytes]:
    """All texts of a row, of which one input may have several."""
    for value in row:
        yield from value if isinstance(value, list) else [value]


def _as_string(value: Any) -> Any:
    """A text as a string; several as a list."""
    return [_as_string(text) for text in value] if isinstance(value, list) else value.decode()


def _session(path: Path, cores: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    options.intra_op_num_threads = cores
    return onnxruntime.InferenceSession(path, options)


def _tensors(tensors: Any) -> dict[str, Any]:
    return {
        tensor.name: {
            "name": tensor.name,
            "dtype": DTYPES[tensor.type],
            "tensor_shape": {
                "dim": [{"size": str(size if isinstance(size, int) else -1), "name": ""} for size in tensor.shape],
                "unknown_rank": False,
            },
        }
        for tensor in tensors
    }
