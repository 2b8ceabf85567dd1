"""`keras_bert_layers` without TensorFlow: the ONNX file of `task.export`, in ONNX Runtime."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from comparison.batches import MAX_LENGTH, over_batches, versions_of
from comparison.machine import num_cores


def prepare(folder: Path, dtype: str) -> None:
    """Exports the sentence encoder."""
    import keras_bert_layers as kbl

    source = folder / "huggingface"
    preprocessor = kbl.load_preprocessor(source, max_length=MAX_LENGTH)
    encoder = kbl.BertSentenceEncoder(kbl.load_backbone(source), preprocessor=preprocessor)
    encoder.export(onnx_file(folder, dtype), format="onnx", dtype=dtype)


def onnx_file(folder: Path, dtype: str) -> Path:
    """Where the exported model lies."""
    return folder / f"ours_{dtype}.onnx"


def start() -> dict[str, str]:
    # onnxruntime-extensions imports these where they are installed, 230 MB; a server has neither, and needs neither.
    sys.modules |= dict.fromkeys(("torch", "transformers", "onnx"))
    import onnxruntime  # noqa: F401
    import onnxruntime_extensions  # noqa: F401

    return versions_of("onnxruntime", "onnxruntime-extensions")


def encoder(folder: Path, dtype: str) -> Callable:
    import onnxruntime
    from onnxruntime_extensions import get_library_path

    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    options.intra_op_num_threads = num_cores()
    session = onnxruntime.InferenceSession(onnx_file(folder, dtype), options)
    return over_batches(lambda texts: session.run(None, {"text": np.array(texts, object)})[0])
