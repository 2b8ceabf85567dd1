"""Exported models that answer HTTP requests as TensorFlow Serving does: those that `serve` runs."""

from __future__ import annotations

import abc
import json
import logging
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers._internal.files.wire_format import read_fields
from keras_bert_layers.cli.local_server import Answer, error_answer
from keras_bert_layers.cli.models import PROGRAM_FILE, load_saved_model, load_task_of_texts
from keras_bert_layers.cli.onnx_file import OnnxAnswerer
from keras_bert_layers.export.json_request import (
    DEFAULT_SIGNATURE,
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

_OWNER = "serve"

# What one step of the model reads, so that even BERT-base takes some seconds for it, and 100 MB.
_STEP_TOKENS = 2048
# As in `export/model_card.py`, which imports Keras.
_CARD_FILE = "model_card.json"
# As in `export/saved_model.py`, which imports Keras too, and as tensorflow-serving-api, whose messages these are.
_REQUESTS = Path("assets.extra") / "tf_serving_warmup_requests"
_PREDICT_LOG, _REQUEST, _MODEL_SPEC, _REQUEST_INPUTS, _SIGNATURE_NAME = 6, 1, 1, 2, 3
_KEY, _VALUE = 1, 2

logger = logging.getLogger(__name__)


class RestModel(abc.ABC):
    """Answers HTTP requests with an exported model, as TensorFlow Serving does.

    - `POST /v1/models/NAME:predict` takes `{"inputs": ...}` or `{"instances": ...}`, and `"signature_name"`.
    - `GET /v1/models/NAME` has the version, `GET /v1/models/NAME/metadata` the signatures.

    Rows run in blocks, so that neither the memory nor the time of a request grows with what it sends.

    Args:
        name: the model's name in addresses.
        version: its version.
        inputs: shapes and dtypes of the inputs of each signature.
        splits: the signatures whose rows do not depend on each other.

    References:
        https://www.tensorflow.org/tfx/serving/api_rest
    """

    def __init__(self, *, name: str, version: int, inputs: dict[str, Inputs], splits: Collection[str]):
        self.name, self.version, self.inputs, self._splits = name, version, inputs, splits

    @abc.abstractmethod
    def step(self, signature: str, block: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs of a signature for a few rows; strings are bytes. RequestError for what the model refuses."""

    @abc.abstractmethod
    def signatures(self) -> dict[str, Any]:
        """Inputs and outputs of each signature, as of `SignatureDef` in JSON."""

    def examples(self) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
        """Requests to run before the first one of a client: by default one row for each signature."""
        for signature, inputs in self.inputs.items():
            shapes = {name: [size or 1 for size in shape] for name, (shape, _) in inputs.items()}
            kinds = {name: (b"words", object) if kind == "string" else (0, kind) for name, (_, kind) in inputs.items()}
            yield signature, {name: np.full(shapes[name], *kinds[name]) for name in inputs}

    def warm_up(self) -> None:
        """Runs the `examples`, as the first run of a graph may take longer than a request may."""
        for signature, block in self.examples():
            try:
                self.step(signature, block)
            except RequestError as error:  # also for a client, who may never send the like
                logger.warning("warm-up of %s: %s", signature, reason(error))

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
        except RequestError as error:
            logger.warning("%s: %s", path, reason(error))
            return error_answer(reason(error), error.status)

    def _predict(self, body: dict[str, Any]) -> dict[str, Any]:
        request = predict_request(body)
        given = arrays(request.signature, request.values, self.inputs)
        check_size(given)
        found = {name: plain(array) for name, array in self._run(request.signature, given).items()}
        only = next(iter(found.values())) if len(found) == 1 else None  # without a name, as TensorFlow Serving has it
        if request.in_columns:
            return {"outputs": found if only is None else only}
        rows = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
        return {"predictions": rows if only is None else only}

    def _run(self, signature: str, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs of a signature; a step cannot be stopped, so the time is checked between steps."""
        end, found = time.monotonic() + SECONDS, []
        for rows in _blocks(given) if signature in self._splits else [...]:
            if time.monotonic() > end:
                rule = f"a request must be answered within {SECONDS:g} seconds, and was not; send fewer rows"
                raise RequestError(rule, status=504, code="timeout")
            found.append(self.step(signature, {name: array[rows] for name, array in given.items()}))
        return {name: _joined([outputs[name] for outputs in found]) for name in found[0]}

    def _metadata(self) -> dict[str, Any]:
        spec = {"name": self.name, "signature_name": "", "version": str(self.version)}
        return {"model_spec": spec, "metadata": {"signature_def": {"signature_def": self.signatures()}}}


class SavedModelRestModel(RestModel):
    """A SavedModel in this process.

    Args:
        path: its directory.
        name: the model's name in addresses.
        version: its version.

    Raises:
        ValueError: it cannot be read.
    """

    def __init__(self, path: Path, *, name: str, version: int):
        cure = "Serve it on another machine, or try its `.keras` file with `demo`."
        self._module = load_saved_model(path, owner=_OWNER, cure=cure)
        self._path = path
        specs = {key: function.structured_input_signature[1] for key, function in self._module.signatures.items()}
        inputs: dict[str, Inputs] = {
            key: {name: (tuple(spec.shape), spec.dtype.name) for name, spec in found.items()}
            for key, found in specs.items()
        }
        card = path / _CARD_FILE
        is_task = card.is_file() and "task" in json.loads(card.read_bytes())
        splits = {key for key in specs if is_task and not key.endswith("tokenize")}
        super().__init__(name=name, version=version, inputs=inputs, splits=splits)

    def step(self, signature: str, block: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs of a signature for a few rows."""
        import tensorflow as tf

        try:
            found = self._module.signatures[signature](**{name: tf.constant(array) for name, array in block.items()})
        except tf.errors.OpError as error:
            # TensorFlow names the arguments of its operation, as in "indices[1] = 9 is not in [0, 9)", and no input.
            shapes = {name: list(array.shape) for name, array in block.items() if array.dtype != object}
            rule = f"the model refuses these ids, of the shapes {shapes}: " if shapes else ""
            raise RequestError(f"{rule}{reason(error)}") from error
        return {name: tensor.numpy() for name, tensor in found.items()}

    def examples(self) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
        """The requests that `export` stored for TensorFlow Serving, or those of every `RestModel` without any."""
        import tensorflow as tf
        from tensorflow.core.framework.tensor_pb2 import TensorProto

        path = self._path / _REQUESTS
        if not path.is_file():
            yield from super().examples()
            return
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            fields = read_fields(_part(_part(record, _PREDICT_LOG), _REQUEST))
            signature = _part(dict(fields)[_MODEL_SPEC], _SIGNATURE_NAME).decode()
            inputs = [value for number, value in fields if number == _REQUEST_INPUTS]
            protos = {_part(pair, _KEY).decode(): TensorProto.FromString(_part(pair, _VALUE)) for pair in inputs}
            yield signature, {name: tf.make_ndarray(proto) for name, proto in protos.items()}

    def signatures(self) -> dict[str, Any]:
        """What the SavedModel states."""
        from google.protobuf.json_format import MessageToDict
        from tensorflow.core.protobuf import saved_model_pb2

        stored = saved_model_pb2.SavedModel.FromString((self._path / PROGRAM_FILE).read_bytes())
        signatures = stored.meta_graphs[0].signature_def
        options = {"preserving_proto_field_name": True, "always_print_fields_with_no_presence": True}
        return {name: MessageToDict(signatures[name], **options) for name in sorted(signatures)}


class TaskRestModel(RestModel):
    """A `.keras` file in this process, on any backend of Keras, without TensorFlow on others.

    Args:
        path: the file.
        name: the model's name in addresses.

    Raises:
        CheckpointError, ValueError: it does not hold a task with a tokenizer.
    """

    def __init__(self, path: Path, *, name: str):
        self._task = load_task_of_texts(str(path), None, owner=_OWNER, argument="DIR").model
        inputs: dict[str, Inputs] = {DEFAULT_SIGNATURE: self._task.text_inputs()}
        super().__init__(name=name, version=1, inputs=inputs, splits=[DEFAULT_SIGNATURE])

    def step(self, signature: str, block: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The answers to a few texts."""
        columns = tuple(map(_as_strings, block.values()))
        try:
            found = self._task.answer(columns if len(columns) > 1 else columns[0], batch_size=len(columns[0]))
        except ValueError as error:
            raise RequestError(reason(error)) from error
        return {name: _as_bytes(values) for name, values in found.items()}

    def signatures(self) -> dict[str, Any]:
        """The inputs by name; the outputs are those of `answer`."""
        ((_, example),) = self.examples()
        outputs = {name: {"name": name} for name in self.step(DEFAULT_SIGNATURE, example)}
        inputs = {name: {"name": name} for name in self._task.text_inputs()}
        return {DEFAULT_SIGNATURE: {"inputs": inputs, "outputs": outputs}}


class OnnxRestModel(RestModel):
    """An ONNX file of this package in ONNX Runtime, without TensorFlow.

    Args:
        path: the file.
        name: the model's name in addresses.

    Raises:
        ModuleNotFoundError, ValueError: as of `OnnxAnswerer`.
    """

    def __init__(self, path: Path, *, name: str):
        self._answerer = OnnxAnswerer(path, owner=_OWNER)
        axes = self._answerer.inputs.items()
        inputs: dict[str, Inputs] = {DEFAULT_SIGNATURE: {name: ((None,) * each, "string") for name, each in axes}}
        super().__init__(name=name, version=1, inputs=inputs, splits=[DEFAULT_SIGNATURE])

    def step(self, signature: str, block: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The answers to a few texts."""
        try:
            found = self._answerer.run({name: _as_strings(values).tolist() for name, values in block.items()})
        except ValueError as error:
            raise RequestError(reason(error)) from error
        return {name: _as_bytes(values) for name, values in found.items()}

    def signatures(self) -> dict[str, Any]:
        """The inputs and outputs by name."""
        outputs = {name: {"name": name} for name in self._answerer.outputs}
        inputs = {name: {"name": name} for name in self._answerer.inputs}
        return {DEFAULT_SIGNATURE: {"inputs": inputs, "outputs": outputs}}


def _part(message: Any, number: int) -> Any:
    """The field of a message with this number."""
    return dict(read_fields(message))[number]


def _as_strings(values: np.ndarray) -> np.ndarray:
    return np.vectorize(bytes.decode, otypes=[object])(values) if values.dtype == object and values.size else values


def _as_bytes(values: np.ndarray) -> np.ndarray:
    return np.vectorize(str.encode, otypes=[object])(values) if values.dtype == object else values


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
