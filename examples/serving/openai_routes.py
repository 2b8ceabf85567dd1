"""OpenAI's embeddings, for sentence encoders and dual encoders.

- POST /v1/embeddings   {"input": ["a text"], "model": NAME, "encoding_format": "float" or "base64"}
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from answerer import Answerer, RequestRecord
from json_route import json_route
from starlette.routing import Route
from vectors import ENCODERS_ONLY, is_encoder, normalized

from keras_bert_layers.export.json_request import RequestError


def openai_routes(answerer: Answerer, name: str) -> list[Route]:
    """The route of a model of that name."""

    async def embeddings(body: dict[str, Any], record: RequestRecord) -> dict[str, Any]:
        version = answerer.model.current
        if not is_encoder(version):
            raise RequestError(ENCODERS_ONLY, code="wrong_task")
        if body.get("model") != name:
            message = f"model must be {name!r}, the one that this server has. Received: {body.get('model')!r}"
            raise RequestError(message, status=404, code="model_not_found")
        encode = _encoder(body.get("encoding_format", "float"))
        answers = await answerer.answer("serving_default", _texts(body), record, version=version, with_tokens=True)
        vectors = normalized([answer["embedding"] for answer in answers])
        _check_dimensions(body.get("dimensions"), vectors.shape[1])
        record.tokens = sum(answer["num_tokens"] for answer in answers)
        return {
            "object": "list",
            "model": name,
            "data": [
                {"object": "embedding", "index": index, "embedding": encode(vector)}
                for index, vector in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": record.tokens, "total_tokens": record.tokens},
        }

    return [json_route("/v1/embeddings", embeddings, _error, answerer)]


def _error(error: RequestError) -> tuple[int, Any]:
    """An error in OpenAI's form."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return error.status, {"error": {"message": str(error), "type": kind, "param": None, "code": error.code}}


def _texts(body: dict[str, Any]) -> dict[str, Any]:
    texts = body.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RequestError("input must be a string or a list of strings; ids are of another model's vocabulary")
    return {"text": texts}


def _encoder(encoding_format: Any) -> Any:
    if encoding_format == "float":
        return np.ndarray.tolist
    if encoding_format == "base64":
        return lambda vector: base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    raise RequestError(f"encoding_format must be 'float' or 'base64'. Received: {str(encoding_format)[:20]!r}")


def _check_dimensions(dimensions: Any, vector_dim: int) -> None:
    """A vector may be cut only if its model was trained for that; such a model is exported with `truncate_dim`."""
    if dimensions is not None and dimensions != vector_dim:
        raise RequestError(f"dimensions must be {vector_dim} or absent. Received: {str(dimensions)[:20]}")
