"""A server for exported models, made with BentoML, that runs wherever TensorFlow does.

It has TensorFlow Serving's REST interface, so `rest_client.py` works with both. Use it to try a model, in tests, and on
machines without containers; prefer TensorFlow Serving where it runs.

    MODEL_BASE_PATH=models MODEL_NAME=sentiment BENTOML_DO_NOT_TRACK=True \
        bentoml serve --working-dir examples/serving service:TextService --host 127.0.0.1 --port 8501

Needs `pip install bentoml tensorflow tensorflow-text`. The model is $MODEL_BASE_PATH/$MODEL_NAME, a folder of versions.

- POST /v1/models/NAME:predict   {"inputs": {"text": [...]}, "signature_name": "serving_default"} -> {"outputs": ...}
- GET /v1/models/NAME            the versions and their states
- GET /v1/models/NAME/metadata   the signatures, with the dtypes and shapes of inputs and outputs
- GET /                          this list; it replaces BentoML's page, which loads a tracker from another host
- GET /readyz, /livez, /metrics  for monitoring
"""

from __future__ import annotations

import html
import json
import logging
import os
from pathlib import Path
from typing import Any

import bentoml
import numpy as np
from bad_request import BadRequestError
from batcher import Batcher
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

MODEL_NAME = os.environ.get("MODEL_NAME", "model")
MODEL_FOLDER = Path(os.environ.get("MODEL_BASE_PATH", "/models")).absolute() / MODEL_NAME
ADDRESS = f"/v1/models/{MODEL_NAME}"

MAX_BATCH_SIZE = 32  # rows of one step of the model
MAX_WAITING = int(os.environ.get("MAX_WAITING", "256"))  # requests in progress; above it, clients are asked to retry
# The timeout of a request. BentoML keeps some kilobytes of every request for this time.
SECONDS = int(os.environ.get("REQUEST_SECONDS", "10"))

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
logger = logging.getLogger("service")

# Its routes come before BentoML's, and not by `bentoml.api`, which writes a traceback for a body that is no JSON.
interface = Starlette()


def make_model() -> Any:
    """The model. It is imported in the worker process; the parent process needs no TensorFlow."""
    # Packs the weights for matrix products once, as they never change; not for a process that trains.
    os.environ.setdefault("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "1")
    from served_model import ServedModel

    return ServedModel(MODEL_FOLDER)


@bentoml.service(name="text_service", workers=1, traffic={"timeout": SECONDS}, logging={"access": {"enabled": False}})
@bentoml.asgi_app(interface, path="/")
class TextService:
    """Serves one exported model, and batches requests; each gets the answer that it would get alone.

    BentoML's own batching is not used: one failing request fails its whole batch, and the call between methods that it
    needs broke off under load (BentoML 1.4.39, `ServerDisconnectedError`).
    """

    def __init__(self) -> None:
        self.model = make_model()
        self.batcher = Batcher(_run, max_rows=MAX_BATCH_SIZE)
        self._num_requests = 0
        self._under_way = 0
        if not self.model.load_newest():
            logger.error("%s holds no version that can be served yet", MODEL_FOLDER)
        self.model.watch()
        interface.state.service = self

    async def __is_ready__(self) -> bool:
        """Whether a version is loaded, for GET /readyz."""
        return self.model.current is not None

    @bentoml.on_shutdown
    def stop(self) -> None:
        """Stops looking for new versions; BentoML has finished all requests before."""
        self.model.stop()

    async def predict(self, body: dict[str, Any]) -> JSONResponse:
        """TensorFlow Serving's `predict`, for columns (`inputs`) and for rows (`instances`)."""
        inputs, instances = body.get("inputs"), body.get("instances")
        signature = body.get("signature_name", "serving_default")
        version = self.model.current  # the whole request uses this version
        if version is None or self._under_way >= MAX_WAITING:
            reason = "too many requests" if version else "no version of the model is loaded yet"
            return JSONResponse({"error": reason}, 503, {"Retry-After": "1"})
        self._under_way += 1
        try:
            if (inputs is None) == (instances is None):
                raise BadRequestError("send either inputs or instances")
            columns = version.check(signature, _columns(instances) if inputs is None else inputs)
            answers = await self.batcher.answer(self._key(version, signature, columns), columns)
        except Exception as error:  # any error of the model becomes the answer
            return JSONResponse({"error": version.reason(error)}, 400)
        finally:
            self._under_way -= 1
        return JSONResponse(_content(answers, signature, in_columns=instances is None))

    def _key(self, version: Any, signature: str, columns: dict[str, np.ndarray]) -> tuple[Any, ...]:
        """The key of rows that may share a step: their version, signature and shape.

        Requests of ids run alone: a wrong id fails the whole step, and the widths of `tokenize` belong to the request.
        """
        self._num_requests += 1
        alone = self._num_requests if signature.endswith(("tokenize", "token_ids")) else None
        return version, signature, tuple(column.shape[1:] for column in columns.values()), alone


def _run(key: tuple[Any, ...], columns: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    version, signature, *_ = key
    return version.answer(signature, columns)


async def _predict(request: Request) -> JSONResponse:
    """POST /v1/models/NAME:predict."""
    try:
        body = json.loads((await request.body()).decode("utf-8"))
    except ValueError as error:  # no UTF-8, or no JSON
        what = getattr(error, "msg", None) or getattr(error, "reason", "")
        reason = f"JSON Parse error: {what} at offset: {getattr(error, 'pos', None) or getattr(error, 'start', 0)}"
    else:
        if isinstance(body, dict):
            return await interface.state.service.predict(body)
        reason = "the request must be a JSON object"
    logger.warning("%s: %s", request.url.path, reason)
    return JSONResponse({"error": reason}, 400)


async def _versions(request: Request) -> JSONResponse:
    """TensorFlow Serving's answer to GET /v1/models/NAME."""
    name = request.path_params["name"].removesuffix(":predict")
    if name != MODEL_NAME:
        return JSONResponse({"error": f"no such model: {name!r}; this server has {MODEL_NAME!r}"}, 404)
    ok = {"error_code": "OK", "error_message": ""}
    states = sorted(interface.state.service.model.versions().items(), reverse=True)
    found = [{"version": str(number), "state": state, "status": ok} for number, state in states]
    return JSONResponse({"model_version_status": found})


async def _metadata(_: Request) -> JSONResponse:
    """TensorFlow Serving's answer to GET /v1/models/NAME/metadata."""
    version = interface.state.service.model.current
    if version is None:
        return JSONResponse({"error": "no version of the model is loaded yet"}, 503)
    spec = {"name": MODEL_NAME, "signature_name": "", "version": str(version.number)}
    return JSONResponse({"model_spec": spec, "metadata": {"signature_def": version.signature_def}})


async def _page(_: Request) -> HTMLResponse:
    """GET /, without a script and without another host."""
    title = f"{html.escape(MODEL_NAME)}: an exported model"
    text = html.escape("- POST" + (__doc__ or "").partition("- POST")[2])
    return HTMLResponse(f"<!DOCTYPE html><html lang=en><title>{title}</title><h1>{title}</h1><pre>{text}</pre></html>")


interface.router.routes += [
    Route("/", _page),
    Route(f"{ADDRESS}:predict", _predict, methods=["POST"]),
    Route(f"{ADDRESS}/metadata", _metadata),
    Route("/v1/models/{name}", _versions, methods=["GET", "POST"]),
]


def _columns(instances: Any) -> Any:
    """Rows as columns: `[{"text": "a"}, {"text": "b"}]` as `{"text": ["a", "b"]}`; plain rows as they are."""
    if not isinstance(instances, list) or not instances:
        raise BadRequestError("instances must be a list that is not empty")
    if not any(isinstance(instance, dict) for instance in instances):
        return instances
    names = set(instances[0]) if isinstance(instances[0], dict) else set()
    if not all(isinstance(instance, dict) and set(instance) == names for instance in instances):
        raise BadRequestError("instances must all have the same inputs")
    return {name: [instance[name] for instance in instances] for name in names}


def _content(answers: list[dict[str, Any]], signature: str, *, in_columns: bool) -> dict[str, Any]:
    """The rows as one answer, by column or by row. A single output has no name, as in TensorFlow Serving."""
    of_ids = signature.endswith("tokenize")
    columns = {name: _filled([answer[name] for answer in answers], of_ids) for name in answers[0]}
    only = next(iter(columns.values())) if len(columns) == 1 else None
    if in_columns:
        return {"outputs": columns if only is None else only}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {"predictions": rows if only is None else only}


def _filled(column: list[Any], of_ids: bool) -> list[Any]:
    """Rows padded to one length: strings by `""`, ids by 0, other numbers by -1."""
    if not isinstance(column[0], list):
        return column
    width = max(len(row) for row in column)
    entry = next((row[0] for row in column if row), None)
    if isinstance(entry, list):  # every mask has the same number of candidates
        fill: Any = _filled([[], entry], of_ids)[0]
    else:
        fill = "" if isinstance(entry, str) else 0 if of_ids else -1
    return [row + [fill] * (width - len(row)) for row in column]
