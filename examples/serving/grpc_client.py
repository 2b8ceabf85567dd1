"""A gRPC client of TensorFlow Serving.

    python3 examples/serving/grpc_client.py --model sentiment "A joy to watch." "Two dull hours."
    ... --address 127.0.0.1:8500                   the address of the server (the default)
    ... --signature tokenize                       another signature

Needs `tensorflow-serving-api`, which installs TensorFlow for its messages, but not this package. Prints one line of
JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

PREDICT = "tensorflow.serving.PredictionService"
MAX_MESSAGE_BYTES = 64 * 1024 * 1024  # gRPC's default, 4 MB, holds the embeddings of 2,700 sentences


class GrpcClient:
    """Sends requests to one model; gRPC retries those that no server has answered.

    Args:
        address: the server, as `"127.0.0.1:8500"`; `"dns:///sentiment:8500"` spreads requests over the pods of a
            headless service.
        model: the model's name.
        timeout: seconds for a request, including all attempts.
        attempts: attempts per request, including the first; gRPC makes at most 5.

    References:
        https://github.com/grpc/proposal/blob/master/A6-client-retries.md
    """

    def __init__(self, address: str, model: str, *, timeout: float = 10.0, attempts: int = 4):
        self.model = model
        self.timeout = timeout
        self._channel = grpc.insecure_channel(address, options=_options(attempts))
        self._predictions = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)

    def predict(
        self, inputs: dict[str, Any], signature: str = "serving_default", *, version: int | None = None
    ) -> dict[str, np.ndarray]:
        """The answers of a signature.

        Args:
            inputs: name -> an array or a list of strings or integers, batch first.
            signature: the signature's name.
            version: the version that must answer; the newest if None.

        Returns:
            Name -> array, batch first; strings are bytes.

        Raises:
            grpc.RpcError: `code()` and `details()` give the reason.
        """
        request = predict_pb2.PredictRequest()
        request.model_spec.name = self.model
        request.model_spec.signature_name = signature
        if version is not None:
            request.model_spec.version.value = version
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(_array(value)))
        response = self._predictions.Predict(request, timeout=self.timeout)
        return {name: tf.make_ndarray(tensor) for name, tensor in response.outputs.items()}

    def versions(self) -> dict[int, str]:
        """The versions that the server knows, and their states: `"AVAILABLE"`, `"LOADING"`, `"END"` and so on."""
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = self.model
        status = self._models.GetModelStatus(request, timeout=self.timeout).model_version_status
        state = get_model_status_pb2.ModelVersionStatus.State
        return {version.version: state.Name(version.state) for version in status}

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()


def _options(attempts: int) -> list[tuple[str, Any]]:
    """Retries with exponential backoff, spread over all addresses of a name."""
    retries = {
        "maxAttempts": attempts,
        "initialBackoff": "0.1s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
    }
    config = {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [{"name": [{"service": PREDICT}], "retryPolicy": retries}],
    }
    return [
        ("grpc.enable_retries", 1),
        ("grpc.service_config", json.dumps(config)),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.enable_http_proxy", 0),
    ]


def _array(value: Any) -> np.ndarray:
    """Strings as bytes, integers as the int32 that the signatures take."""
    array = np.asarray(value)
    if array.dtype.kind == "U":
        return np.char.encode(array, "utf-8").astype(object)
    return array.astype(np.int32) if array.dtype.kind == "i" else array


def _printable(array: np.ndarray) -> Any:
    if array.dtype == object:
        return np.vectorize(lambda text: text.decode("utf-8", "replace"), otypes=[object])(array).tolist()
    return array.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", help="the rows of the input `text`")
    parser.add_argument("--address", default="127.0.0.1:8500", help="the address of the server")
    parser.add_argument("--model", required=True, help="the model's name")
    parser.add_argument("--signature", default="serving_default", help="the signature to call")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds (default: 10)")
    arguments = parser.parse_args()
    client = GrpcClient(arguments.address, arguments.model, timeout=arguments.timeout)
    answer = client.predict({"text": arguments.texts}, arguments.signature)
    print(json.dumps({name: _printable(array) for name, array in answer.items()}, ensure_ascii=False))


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        sys.exit(f"grpc_client: {error.code().name}: {error.details()}")
