"""Encodes texts with an ONNX file, in a process that has not imported TensorFlow.

ONNX Runtime's operations on strings are wrong in a process that has.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers._internal.lazy import LazyModule, extensions_library
from keras_bert_layers.export.search.corpus import encoded_texts
from keras_bert_layers.export.signature import strings_for_onnx

onnx = LazyModule("onnx", "onnx")


def encode(model: Any, texts: Sequence[str]) -> np.ndarray:
    """The vectors of texts, float32 `(texts, vector_dim)`.

    Args:
        model: a `ModelProto` from one input of strings to vectors.
        texts: at least one.

    Raises:
        RuntimeError: the process has failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "encoder.onnx"
        onnx.save_model(model, file, save_as_external_data=True)  # a message of more than 2 GB cannot be passed
        program = f"from {__name__} import main; main()"
        command, asked = [sys.executable, "-c", program, str(file)], json.dumps(list(texts))
        ran = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"`replace_documents`: ONNX Runtime could not encode the documents. {ran.stderr[-500:]}")
        return np.load(file.with_suffix(".npy"))


def main() -> None:
    """Encodes the texts of the standard input with the file that the first argument names."""
    import onnxruntime

    file = Path(sys.argv[1])
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(extensions_library())
    session = onnxruntime.InferenceSession(str(file), options)
    (name,) = (put.name for put in session.get_inputs())
    found = encoded_texts(lambda texts: session.run(None, {name: strings_for_onnx(texts)})[0], json.load(sys.stdin))
    np.save(file.with_suffix(".npy"), found)
