"""Warm-up requests, which TensorFlow Serving runs before it serves a model."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers._internal.lazy import tf

#: Signature -> requests, each a dictionary of input -> array.
Requests = Mapping[str, Sequence[Mapping[str, Any]]]

_FILE = Path("assets.extra") / "tf_serving_warmup_requests"


def write_requests(folder: Path, requests: Requests) -> None:
    """Writes requests beside a SavedModel, where TensorFlow Serving looks for them.

    References:
        `saved_model_warmup_util.cc` of tensorflow/serving: if a request fails, or there are more than 1,000, the
        version is not served.
    """
    log_pb2 = _messages()
    path = folder / _FILE
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, examples in requests.items():
            for inputs in examples:
                tensors = {name: tf.make_tensor_proto(values) for name, values in inputs.items()}
                request = {"model_spec": {"signature_name": signature}, "inputs": tensors}
                log = log_pb2.PredictionLog(predict_log={"request": request})
                writer.write(log.SerializeToString(deterministic=True))


def _messages() -> Any:
    """The protobuf module of the log of requests."""
    try:
        return importlib.import_module("tensorflow_serving.apis.prediction_log_pb2")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "`export`: warm-up requests need tensorflow-serving-api, which is not installed here. Install it with "
            "`pip install tensorflow-serving-api`, or give `warm_up=False`.",
            name=error.name,
        ) from error
