"""Serve an exported model on this machine, with TensorFlow Serving's REST interface.

For trying a model, and for programs on this machine. It listens on 127.0.0.1 only, with neither a password nor
encryption, and answers one request at a time, of at most 1,024 rows and 10 seconds. In production, run TensorFlow
Serving on the same directory.

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
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers.cli.local_server import Answer, error_answer, serve_until_interrupted
from keras_bert_layers.cli.models import PROGRAM_FILE, load_saved_model
from keras_bert_layers.cli.train import EXPORT
from keras_bert_layers.export.json_request import (
    SECONDS,
    Inputs,
    RequestError,
    arrays,
    check_size,
    parsed,
    plain,
    predict_request,
    reason,
)

OWNER = "serve"

# What one step of the model reads, so that even BERT-base takes some seconds for it, and 100 MB.
_STEP_TOKENS = 2048
# As in `export/model_card.py`, which imports Keras.
_CARD_FILE = "model_card.json"

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

    Rows run in blocks, so that neither the memory nor the time of a request grows with what it sends.

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
        specs = {key: function.structured_input_signature[1] for key, function in self._signatures.items()}
        self._inputs: dict[str, Inputs] = {
            key: {name: (tuple(spec.shape), spec.dtype.name) for name, spec in found.items()}
            for key, found in specs.items()
        }
        card = path / _CARD_FILE
        is_task = card.is_file() and "task" in json.loads(card.read_bytes())  # its rows do not depend on each other
        self._splits = {key for key in specs if is_task and not key.endswith("tokenize")}

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
            return error_answer(f"no such address: {method} {path[:200]}; this server has POST {address}:predict", 404)
        try:
            return Answer(json.dumps(self._predict(parsed(body)), ensure_ascii=False))
        except (RequestError, self._tf.errors.OpError) as error:
            logger.warning("%s: %s", path, reason(error))
            return error_answer(reason(error), error.status if isinstance(error, RequestError) else 400)

    def _predict(self, body: dict[str, Any]) -> dict[str, Any]:
        request = predict_request(body)
        given = arrays(request.signature, request.values, self._inputs)
        check_size(given)
        found = {name: plain(array) for name, array in self._run(request.signature, given).items()}
        only = next(iter(found.values())) if len(found) == 1 else None  # without a name, as TensorFlow Serving has it
        if request.in_columns:
            return {"outputs": found if only is None else only}
        rows = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
        return {"predictions": rows if only is None else only}

    def _run(self, signature: str, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs of a signature; a step of TensorFlow cannot be stopped, so the time is checked between steps."""
        end, found = time.monotonic() + SECONDS, []
        for rows in _blocks(given) if signature in self._splits else [...]:
            if time.monotonic() > end:
                rule = f"a request must be answered within {SECONDS:g} seconds, and was not; send fewer rows"
                raise RequestError(rule, status=504, code="timeout")
            block = {name: self._tf.constant(array[rows]) for name, array in given.items()}
            found.append({name: tensor.numpy() for name, tensor in self._signatures[signature](**block).items()})
        return {name: _joined([outputs[name] for outputs in found]) for name in found[0]}

    def _metadata(self) -> dict[str, Any]:
        from google.protobuf.json_format import MessageToDict
        from tensorflow.core.protobuf import saved_model_pb2

        stored = saved_model_pb2.SavedModel.FromString((self._path / PROGRAM_FILE).read_bytes())
        signatures = stored.meta_graphs[0].signature_def
        options = {"preserving_proto_field_name": True, "always_print_fields_with_no_presence": True}
        found = {name: MessageToDict(signatures[name], **options) for name in sorted(signatures)}
        spec = {"name": self.name, "signature_name": "", "version": str(self.version)}
        return {"model_spec": spec, "metadata": {"signature_def": {"signature_def": found}}}


def _blocks(given: dict[str, np.ndarray]) -> Iterator[slice]:
    """Slices of rows that have at most `_STEP_TOKENS` tokens, estimated by their bytes; a longer row is alone."""
    tokens = np.zeros(len(next(iter(given.values()))))
    for array in given.values():
        rows = array.reshape(len(array), -1)
        is_text = array.dtype == object
        tokens += [sum(len(text) // 4 + 3 for text in row) for row in rows] if is_text else rows.shape[1]
    start, total = 0, 0.0
    for row, number in enumerate(tokens):
        if row > start and total + number > _STEP_TOKENS:
            yield slice(start, row)
            start, total = row, 0.0
        total += number
    yield slice(start, len(tokens))


def _joined(blocks: list[np.ndarray]) -> np.ndarray:
    """The rows of all blocks. An export fills up lists of entities and of masks to the longest of a block."""
    most = np.max([block.shape for block in blocks], axis=0)[1:]
    parts = (
        np.pad(
            block,
            [(0, 0), *((0, size - own) for size, own in zip(most, block.shape[1:], strict=True))],
            constant_values=b"" if block.dtype == object else -1,
        )
        for block in blocks
    )
    return blocks[0] if len(blocks) == 1 else np.concatenate(list(parts))
