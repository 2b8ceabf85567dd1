"""TensorFlow Serving's REST interface.

- POST /v1/models/NAME:predict   {"inputs": {"text": [...]}, "signature_name": "serving_default"} -> {"outputs": ...}
- GET /v1/models/NAME            the versions and their states
- GET /v1/models/NAME/metadata   the signatures, with the dtypes and shapes of inputs and outputs
"""

from __future__ import annotations

from typing import Any

from answerer import Answerer, RequestRecord
from json_route import json_route
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from keras_bert_layers.export.json_request import RequestError, predict_request


def tensorflow_routes(answerer: Answerer, name: str) -> list[Route]:
    """The routes of a model of that name."""

    async def predict(body: dict[str, Any], record: RequestRecord) -> dict[str, Any]:
        """`predict`, for columns (`inputs`) and for rows (`instances`)."""
        request = predict_request(body)
        version = answerer.model.current
        answers = await answerer.answer(request.signature, request.values, record, version=version)
        return _content(answers, request.signature, in_columns=request.in_columns)

    async def versions(_: Request) -> JSONResponse:
        ok = {"error_code": "OK", "error_message": ""}
        states = sorted(answerer.model.versions().items(), reverse=True)
        found = [{"version": str(number), "state": state, "status": ok} for number, state in states]
        return JSONResponse({"model_version_status": found})

    async def other(request: Request) -> JSONResponse:
        asked = request.path_params["name"].removesuffix(":predict")
        if asked == name:
            return JSONResponse({"error": "predict by POST"}, 405, {"Allow": "POST"})
        return JSONResponse({"error": f"no such model: {asked!r}; this server has {name!r}"}, 404)

    async def metadata(_: Request) -> JSONResponse:
        version = answerer.model.current
        if version is None:
            return JSONResponse({"error": "no version of the model is loaded yet"}, 503)
        spec = {"name": name, "signature_name": "", "version": str(version.number)}
        return JSONResponse({"model_spec": spec, "metadata": {"signature_def": version.signature_def}})

    return [
        json_route(f"/v1/models/{name}:predict", predict, _error, answerer),
        Route(f"/v1/models/{name}/metadata", metadata),
        Route(f"/v1/models/{name}", versions, methods=["GET", "POST"]),
        Route("/v1/models/{name}", other, methods=["GET", "POST"]),
    ]


def _error(error: RequestError) -> tuple[int, Any]:
    return error.status, {"error": str(error)}


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
