"""One ONNX file that takes texts: `export(path, format="onnx")`. It answers as an `ExportedModel` does.

It needs onnxruntime and onnxruntime-extensions, and no TensorFlow.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from json_values import encoded, short
from onnxruntime_extensions import get_library_path
from request_error import RequestError

SIGNATURE, INPUT, NUM_TOKENS = "serving_default", "text", "num_tokens"
METHOD = "tensorflow/serving/predict"
DTYPES = {"tensor(string)": "DT_STRING", "tensor(float)": "DT_FLOAT", "tensor(int32)": "DT_INT32"}


class OnnxModel:
    """An ONNX file, warmed up by an empty text.

    Args:
        path: the file.
        number: its version.

    Attributes:
        signature_def: its one signature, as TensorFlow Serving's `/metadata` has it.
        card: what the file tells of itself.
        max_length: the tokens that the model reads of a text.
    """

    def __init__(self, path: Path, number: int):
        self.number = number
        options = onnxruntime.SessionOptions()
        options.register_custom_ops_library(get_library_path())
        options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        self._session = onnxruntime.InferenceSession(path, options)
        self.card: dict[str, Any] = json.loads(self._session.get_modelmeta().custom_metadata_map["model_card"])
        self.max_length: int = self.card["preprocessing"]["max_length"]
        self._names = [output.name for output in self._session.get_outputs()]
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        signature = {"inputs": _tensors(inputs), "outputs": _tensors(outputs), "method_name": METHOD}
        self.signature_def = {"signature_def": {SIGNATURE: signature}}
        self.answer(SIGNATURE, {INPUT: np.array([b""], object)})

    def check(self, signature: str, inputs: Any) -> dict[str, np.ndarray]:
        """The texts of a request, as `ExportedModel.check`.

        Raises:
            RequestError: they are no texts, or the request is for something that an ONNX file does not have.
        """
        if signature != SIGNATURE:
            raise RequestError(f"signature_name must be {SIGNATURE!r} for an ONNX file. Received: {signature!r}")
        if isinstance(inputs, dict):
            if set(inputs) != {INPUT}:
                raise RequestError(f"{signature!r} takes the inputs {[INPUT]}. Received: {sorted(inputs)}")
            inputs = inputs[INPUT]
        if not isinstance(inputs, list) or not inputs:
            raise RequestError(f"input {INPUT!r} must be a list that is not empty. Received: {short(inputs)}")
        texts = [encoded(f"row {number} of the input {INPUT!r}", text) for number, text in enumerate(inputs)]
        return {INPUT: np.array(texts, object)}

    def answer(self, signature: str, inputs: dict[str, np.ndarray]) -> list[dict[str, Any]]:
        """The answers, one dictionary of JSON values per row.

        Texts run one by one: on a CPU, ONNX Runtime gains nothing from a batch, and loses what it pads.
        """
        return [self._answer_to(text) for text in inputs[INPUT]]

    def _answer_to(self, text: bytes) -> dict[str, Any]:
        # BERT drops NUL, which would end a text here.
        texts = np.array([text.decode().replace("\0", "")], object)
        outputs = self._session.run(None, {INPUT: texts})
        return {
            name: column[0] if isinstance(column[0], str) else column[0].tolist()
            for name, column in zip(self._names, outputs, strict=True)
        }

    def num_tokens(self, inputs: dict[str, np.ndarray]) -> list[int]:
        """The tokens that the model reads for each text, special tokens included."""
        return [row[NUM_TOKENS] for row in self.answer(SIGNATURE, inputs)]

    def inputs_of(self, signature: str) -> list[str]:
        """The names of a signature's inputs; none if there is no such signature."""
        return [INPUT] if signature == SIGNATURE else []

    def outputs_of(self, signature: str) -> list[str]:
        """The names of a signature's outputs; none if there is no such signature."""
        return sorted(self._names) if signature == SIGNATURE else []


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
