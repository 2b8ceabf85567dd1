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
    predict_pb2, log_pb2 = _messages()
    path = folder / _FILE
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, examples in requests.items():
            for inputs in examples:
                request = predict_pb2.PredictRequest()
                request.model_spec.signature_name = signature
                for name, values in inputs.items():
                    request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
                log = log_pb2.PredictionLog()
                log.predict_log.request.CopyFrom(request)
                writer.write(log.SerializeToString(deterministic=True))


def _messages() -> tuple[Any, Any]:
    """The protobuf modules of requests and of their log."""
    try:
        predict_pb2 = importlib.import_module("tensorflow_serving.apis.predict_pb2")
        log_pb2 = importlib.import_module("tensorflow_serving.apis.prediction_log_pb2")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "`export`: warm-up requests need tensorflow-serving-api, which is not installed here. Install it with "
            "`pip install tensorflow-serving-api`, or give `warm_up=False`.",
            name=error.name,
        ) from error
    return predict_pb2, log_pb2
