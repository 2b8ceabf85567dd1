"""`service.py` with `tokenizers` and ONNX Runtime in the place of the exported model: the peer of the benchmark."""

import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import service
from service import TextService  # noqa: F401  what BentoML serves


class OnnxModel:
    """A model that `comparison/contenders/onnx_runtime.py` wrote to a folder, with the interface of `ServedModel`."""

    number = 1
    max_length = None

    def __init__(self, folder, dtype):
        from comparison.contenders import onnx_runtime

        self._encode = onnx_runtime.encoder(folder, dtype)
        self._encode(["one", "two"], 32)

    @property
    def current(self):
        return self

    def check(self, signature, inputs):
        texts = inputs["text"] if isinstance(inputs, dict) else inputs
        return {"text": np.array([text if isinstance(text, str) else text.decode() for text in texts], object)}

    def answer(self, signature, columns):
        return [{"embedding": row.tolist()} for row in np.asarray(self._encode(columns["text"].tolist(), 32))]

    def load_newest(self):
        return True

    def versions(self):
        return {1: "AVAILABLE"}

    def watch(self):
        """Nothing changes."""

    def stop(self):
        """Nothing runs."""


service.make_model = lambda: OnnxModel(Path(os.environ["ONNX_FOLDER"]), os.environ["ONNX_DTYPE"])
