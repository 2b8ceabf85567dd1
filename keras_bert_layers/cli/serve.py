"""Serve an exported model on this machine, with TensorFlow Serving's REST interface.

For trying a model, and for programs on this machine. It listens on 127.0.0.1 only, with neither a password nor
encryption, and does not batch requests. In production, run TensorFlow Serving on the same directory.

DIR is what train wrote, a directory of versions (1, 2 and so on, of which the highest is served), or a SavedModel.

- POST /v1/models/NAME:predict   {"inputs": {"text": [...]}} or {"instances": [{"text": "..."}]}
- GET /v1/models/NAME            the version and its state
- GET /v1/models/NAME/metadata   the signatures, with the dtypes and shapes of inputs and outputs

Examples:
  keras-bert-layers serve sentiment
  curl http://127.0.0.1:8501/v1/models/sentiment:predict --data '{"inputs": {"text": ["A warm, funny film."]}}'
"""

import argparse
import json
import logging
from pathlib import Path
from typing import Any

from keras_bert_layers.cli.local_server import Answer, serve_until_interrupted
from keras_bert_layers.cli.models import PROGRAM_FILE, load_saved_model
from keras_bert_layers.cli.train import EXPORT

OWNER = "serve"

_SIGNATURE = "serving_default"

logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="the model to serve")
    parser.add_argument("--name", help="the model's name in addresses (default: the name of DIR)")
    parser.add_argument("--port", type=int, default=8501, metavar="N", help="the port to listen on (default: 8501)")


def run(arguments: argparse.Namespace) -> int:
    """Serves until Ctrl-C, and returns 0."""
    path, version = find_export(arguments.folder)
    name = arguments.name or arguments.folder.absolute().name
    model = RestModel(path, name=name, version=version)

    def announce(address: str) -> str:
        return f"{address}/v1/models/{name}:predict; Ctrl-C stops it"

    serve_until_interrupted(arguments.port, model.answer, announce, owner=OWNER)
    return 0


def find_export(folder: Path) -> tuple[Path, int]:
    """The SavedModel to serve in a directory, and its version.

    Raises:
        FileNotFoundError: there is none.
    """
    for candidate in (folder, folder / EXPORT):
        if (candidate / PROGRAM_FILE).is_file():
            return candidate, 1
        found = [path.parent for path in candidate.glob(f"*/{PROGRAM_FILE}") if path.parent.name.isdecimal()]
        if found:
            newest = max(found, key=lambda path: int(path.name))
            return newest, int(newest.name)
    cure = "`keras-bert-layers train` and `task.export` write one."
    raise FileNotFoundError(f"`{OWNER}`: DIR must hold a SavedModel, {PROGRAM_FILE}. Received: {folder}. {cure}")


class RestModel:
    """Answers HTTP requests with a SavedModel, as TensorFlow Serving does.

    - `POST /v1/models/NAME:predict` takes `{"inputs": ...}` or `{"instances": ...}`, and `"signature_name"`.
    - `GET /v1/models/NAME` has the version, `GET /v1/models/NAME/metadata` the signatures.

    Args:
        path: the SavedModel.
        name: the model's name in addresses.
        version: its version.

    Raises:
        ValueError: it cannot be read.

    References:
        https://www.tensorflow.org/tfx/serving/api_rest
    """

    def __init__(self, path: Path, *, name: str, version: int):
        cure = "Serve it on another machine, or try its `.keras` file with `demo`."
        self._module = load_saved_model(path, owner=OWNER, cure=cure)
        import tensorflow as tf

        self._tf, self.name, self.version, self._path = tf, name, version, path
        self._signatures = dict(self._module.signatures)

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        """The answer to a request."""
        address = f"/v1/models/{self.name}"
        if (method, path) == ("GET", address):
            status = {"error_code": "OK", "error_message": ""}
            versions = [{"version": str(self.version), "state": "AVAILABLE", "status": status}]
            return Answer(json.dumps({"model_version_status": versions}))
        if (method, path) == ("GET", f"{address}/metadata"):
            return Answer(json.dumps(self._metadata()))
        if (method, path) != ("POST", f"{address}:predict"):
            return _error(f"no such address: {method} {path}; this server has POST {address}:predict", 404)
        try:
            return Answer(json.dumps(self._predict(_parsed(body)), ensure_ascii=False))
        except (ValueError, TypeError, KeyError, self._tf.errors.OpError) as error:
            reason = str(error).strip().splitlines()
            logger.warning("%s: %s", path, reason[0] if reason else type(error).__name__)
            return _error(reason[0] if reason else type(error).__name__, 400)

    def _predict(self, body: dict[str, Any]) -> dict[str, Any]:
        name = body.get("signature_name") or _SIGNATURE
        if name not in self._signatures:
            raise ValueError(f"signature_name must be one of {sorted(self._signatures)}. Received: {name!r}")
        if ("inputs" in body) == ("instances" in body):
            raise ValueError("send either inputs or instances")
        signature = self._signatures[name]
        specs = signature.structured_input_signature[1]
        values = body["inputs"] if "inputs" in body else _columns(body["instances"])
        if not isinstance(values, dict):
            values = dict.fromkeys(specs, values) if len(specs) == 1 else {}
        if set(values) != set(specs):
            raise ValueError(f"{name!r} takes the inputs {sorted(specs)}. Received: {sorted(values)}")
        outputs = signature(**{key: self._tensor(key, values[key], spec) for key, spec in specs.items()})
        found = {key: _plain(tensor.numpy().tolist()) for key, tensor in outputs.items()}
        only = next(iter(found.values())) if len(found) == 1 else None  # without a name, as TensorFlow Serving has it
        if "inputs" in body:
            return {"outputs": found if only is None else only}
        rows = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
        return {"predictions": rows if only is None else only}

    def _tensor(self, name: str, value: Any, spec: Any) -> Any:
        try:
            tensor = self._tf.constant(value, spec.dtype)
        except (ValueError, TypeError) as error:
            raise ValueError(f"input {name!r} must be lists of {spec.dtype.name} of equal lengths") from error
        if not spec.shape.is_compatible_with(tensor.shape):
            raise ValueError(f"input {name!r} must have the shape {spec.shape}. Received: {tensor.shape}")
        return tensor

    def _metadata(self) -> dict[str, Any]:
        from google.protobuf.json_format import MessageToDict
        from tensorflow.core.protobuf import saved_model_pb2

        stored = saved_model_pb2.SavedModel.FromString((self._path / PROGRAM_FILE).read_bytes())
        signatures = stored.meta_graphs[0].signature_def
        options = {"preserving_proto_field_name": True, "always_print_fields_with_no_presence": True}
        found = {name: MessageToDict(signatures[name], **options) for name in sorted(signatures)}
        spec = {"name": self.name, "signature_name": "", "version": str(self.version)}
        return {"model_spec": spec, "metadata": {"signature_def": {"signature_def": found}}}


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"JSON Parse error: {error}") from error
    if not isinstance(parsed, dict):
        raise ValueError("the request must be a JSON object")
    return parsed


def _columns(instances: Any) -> Any:
    """Rows as columns: `[{"text": "a"}, {"text": "b"}]` as `{"text": ["a", "b"]}`; plain rows as they are."""
    if not isinstance(instances, list) or not instances:
        raise ValueError("instances must be a list that is not empty")
    if not any(isinstance(instance, dict) for instance in instances):
        return instances
    names = set(instances[0]) if isinstance(instances[0], dict) else set()
    if not all(isinstance(instance, dict) and set(instance) == names for instance in instances):
        raise ValueError("instances must all have the same inputs")
    return {name: [instance[name] for instance in instances] for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _error(message: str, status: int) -> Answer:
    return Answer(json.dumps({"error": message[:500]}), status)
