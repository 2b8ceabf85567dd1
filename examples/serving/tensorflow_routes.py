"""TensorFlow Serving's REST interface.

- POST /v1/models/NAME:predict   {"inputs": {"text": [...]}, "signature_name": "serving_default"} -> {"outputs": ...}
- GET /v1/models/NAME            the versions and their states
- GET /v1/models/NAME/metadata   the signatures, with the dtypes and shapes of inputs and outputs
"""

from __future__ import annotations

from typing import Any

from answerer import Answerer, RequestRecord
from json_route import json_route
from request_error import RequestError
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


def tensorflow_routes(answerer: Answerer, name: str) -> list[Route]:
    """The routes of a model of that name."""

    async def predict(body: dict[str, Any], record: RequestRecord) -> dict[str, Any]:
        """`predict`, for columns (`inputs`) and for rows (`instances`)."""
        inputs, instances = body.get("inputs"), body.get("instances")
        signature = body.get("signature_name", "serving_default")
        if (inputs is None) == (instances is None):
            raise RequestError("send either inputs or instances")
        inputs = _columns(instances) if inputs is None else inputs
        answers = await answerer.answer(signature, inputs, record, version=answerer.model.current)
        return _content(answers, signature, in_columns=instances is None)

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


def _columns(instances: Any) -> Any:
    """Rows as columns: `[{"text": "a"}, {"text": "b"}]` as `{"text": ["a", "b"]}`; plain rows as they are."""
    if not isinstance(instances, list) or not instances:
        raise RequestError("instances must be a list that is not empty")
    if not any(isinstance(instance, dict) for instance in instances):
        return instances
    names = set(instances[0]) if isinstance(instances[0], dict) else set()
    if not all(isinstance(instance, dict) and set(instance) == names for instance in instances):
        raise RequestError("instances must all have the same inputs")
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
