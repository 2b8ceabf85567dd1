"""The routes of HuggingFace's text-embeddings-inference.

- POST /embed        {"inputs": ["a text"], "normalize": true, "truncate": true, "prompt_name": null}
- POST /similarity   {"inputs": {"source_sentence": "a text", "sentences": ["another"]}}
- POST /predict      {"inputs": [["a text"], ["a text", "and its pair"]], "raw_scores": false}
- POST /rerank       {"query": "a text", "texts": ["another"], "return_text": false, "raw_scores": false}
- POST /             the one of these that the model can do
"""

from __future__ import annotations

from typing import Any

import numpy as np
from answerer import LOGITS, Answerer, RequestRecord
from json_route import json_route
from starlette.routing import Route
from vectors import ENCODERS_ONLY, is_encoder, normalized

from keras_bert_layers.export.json_request import RequestError

# By status; all others are `Validation`.
ERROR_TYPES = {424: "Backend", 500: "Backend", 503: "Overloaded", 504: "Backend"}


def embeddings_inference_routes(answerer: Answerer) -> list[Route]:
    """The routes of the model that the answerer has."""
    handlers = _Handlers(answerer)
    named = {
        "/embed": handlers.embed,
        "/similarity": handlers.similarity,
        "/predict": handlers.predict,
        "/rerank": handlers.rerank,
        "/": handlers.any_of_them,
    }
    return [json_route(path, handle, _error, answerer) for path, handle in named.items()]


class _Handlers:
    def __init__(self, answerer: Answerer):
        self._answerer = answerer

    async def any_of_them(self, body: dict[str, Any], record: RequestRecord) -> Any:
        """By the model, as clients that know only the server's address expect; encoders do two things."""
        version = self._answerer.model.current
        if _task(version) == "BertCrossEncoder":
            return await self.rerank(body, record)
        if not is_encoder(version):
            return await self.predict(body, record)
        return await (self.similarity if isinstance(body.get("inputs"), dict) else self.embed)(body, record)

    async def embed(self, body: dict[str, Any], record: RequestRecord) -> list[list[float]]:
        texts = body.get("inputs")
        vectors = await self._vectors([texts] if isinstance(texts, str) else texts, body, record)
        if body.get("dimensions") not in (None, vectors.shape[1]):
            raise RequestError(f"dimensions must be {vectors.shape[1]} or absent")
        return (normalized(vectors) if _flag(body, "normalize", default=True) else vectors).tolist()

    async def similarity(self, body: dict[str, Any], record: RequestRecord) -> list[float]:
        inputs = body.get("inputs")
        source = inputs.get("source_sentence") if isinstance(inputs, dict) else None
        sentences = inputs.get("sentences") if isinstance(inputs, dict) else None
        if not isinstance(source, str) or not isinstance(sentences, list):
            raise RequestError("inputs must have a source_sentence, a string, and sentences, a list of strings")
        _check_not_empty(sentences, "inputs.sentences")
        vectors = normalized(await self._vectors([source, *sentences], body.get("parameters") or {}, record))
        return (vectors[1:] @ vectors[0]).tolist()

    async def predict(self, body: dict[str, Any], record: RequestRecord) -> list[Any]:
        version = self._answerer.model.current
        if "probabilities" not in version.outputs_of("serving_default") or _task(version) != "BertClassifier":
            raise RequestError("model is not a classifier", status=424, code="wrong_task")
        rows, is_batch = _sequences(body.get("inputs"))
        names = version.inputs_of("serving_default")
        for index, row in enumerate(rows):
            if len(row) != len(names):
                message = f"this model takes {len(names)} texts ({', '.join(names)}) for each of the inputs"
                raise RequestError(f"{message}. Received: {len(row)} in number {index}")
        inputs = {name: [row[number] for row in rows] for number, name in enumerate(names)}
        scores = await self._scores(version, inputs, body, record)
        labels = version.card["options"].get("class_names") or [str(index) for index in range(len(scores[0]))]
        found = [
            sorted(
                ({"score": score, "label": label} for score, label in zip(row, labels, strict=True)),
                key=lambda prediction: -prediction["score"],
            )
            for row in scores
        ]
        return found if is_batch else found[0]

    async def rerank(self, body: dict[str, Any], record: RequestRecord) -> list[dict[str, Any]]:
        version = self._answerer.model.current
        if _task(version) != "BertCrossEncoder":
            raise RequestError("model is not a re-ranker model", status=424, code="wrong_task")
        query, texts = body.get("query"), body.get("texts")
        if not isinstance(query, str) or not isinstance(texts, list):
            raise RequestError("query must be a string, and texts a list of strings")
        _check_not_empty(texts, "texts")
        _check_truncation(version, body)
        inputs = {"text": [query] * len(texts), "text_pair": texts}
        answers = await self._answerer.answer(LOGITS, inputs, record, version=version)
        scores = np.array(answers)[:, 0]
        if not _flag(body, "raw_scores", default=False):  # here and there a sigmoid, whatever the model's activation
            scores = 0.5 * (1 + np.tanh(0.5 * scores))
        with_text = _flag(body, "return_text", default=False)
        ranks = np.argsort(-scores, kind="stable").tolist()
        return [
            {"index": index, **({"text": texts[index]} if with_text else {}), "score": float(scores[index])}
            for index in ranks
        ]

    async def _vectors(self, texts: Any, options: dict[str, Any], record: RequestRecord) -> np.ndarray:
        version, prompt = self._answerer.model.current, options.get("prompt_name")
        signature = "serving_default" if prompt is None else str(prompt)
        if not is_encoder(version):
            raise RequestError(ENCODERS_ONLY, status=424, code="wrong_task")
        if not is_encoder(version, signature):
            raise RequestError("prompt_name must be a prompt of the model, or for a dual encoder 'query' or 'document'")
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise RequestError("inputs must be a string or a list of strings; ids are not taken here")
        _check_not_empty(texts, "inputs")
        _check_truncation(version, options)
        whole = not _flag(options, "truncate", default=True)
        if whole and prompt is not None:
            raise RequestError("truncate must be true or absent with a prompt_name")
        answers = await self._answerer.answer(signature, {"text": texts}, record, version=version, with_tokens=whole)
        if whole:
            _check_lengths([answer["num_tokens"] for answer in answers], version)
        return np.array([answer["embedding"] for answer in answers], np.float32)

    async def _scores(
        self, version: Any, inputs: dict[str, list[str]], body: dict[str, Any], record: RequestRecord
    ) -> list[list[float]]:
        _check_truncation(version, body)
        raw = _flag(body, "raw_scores", default=False)
        whole = not _flag(body, "truncate", default=True)
        if raw and whole:
            raise RequestError("truncate must be true or absent with raw_scores")
        signature = LOGITS if raw else "serving_default"
        answers = await self._answerer.answer(signature, inputs, record, version=version, with_tokens=whole)
        if whole:
            _check_lengths([answer["num_tokens"] for answer in answers], version)
        return answers if raw else [answer["probabilities"] for answer in answers]


def _error(error: RequestError) -> tuple[int, Any]:
    """The form of text-embeddings-inference: 422 for what it does not accept, and 400 for what is empty."""
    if error.code == "empty":
        return 400, {"error": str(error), "error_type": "Empty"}
    status = 422 if error.status == 400 else error.status
    return status, {"error": str(error), "error_type": ERROR_TYPES.get(status, "Validation")}


def _task(version: Any) -> str | None:
    return version.card.get("task")


def _flag(body: dict[str, Any], name: str, *, default: bool) -> bool:
    value = default if body.get(name) is None else body[name]
    if not isinstance(value, bool):
        raise RequestError(f"{name} must be true or false")
    return value


def _check_not_empty(texts: list[Any], name: str) -> None:
    if not texts:
        raise RequestError(f"`{name}` cannot be empty", code="empty")


def _check_truncation(version: Any, options: dict[str, Any]) -> None:
    """The side that is cut is a part of the export."""
    side = version.card.get("preprocessing", {}).get("truncation_side", "right")
    if str(options.get("truncation_direction") or side).lower() != side:
        raise RequestError(f"truncation_direction must be {side!r}, as the model was exported, or absent")


def _check_lengths(num_tokens: list[int], version: Any) -> None:
    """The tokenizer of the export cuts, so a text of just as many tokens cannot be distinguished from a longer one."""
    for index, tokens in enumerate(num_tokens):
        if version.max_length is not None and tokens >= version.max_length:
            message = f"with truncate=false, texts must have less than {version.max_length} tokens"
            raise RequestError(f"{message}. Received: {tokens} or more in number {index}", code="too_many_text_tokens")


def _sequences(inputs: Any) -> tuple[list[list[str]], bool]:
    """Texts and pairs as lists, and whether they came as a batch: a list of strings is one pair, not a batch."""
    if isinstance(inputs, list) and inputs and all(isinstance(row, list) for row in inputs):
        return inputs, True
    if isinstance(inputs, str):
        return [[inputs]], False
    if isinstance(inputs, list) and inputs:
        return [inputs], False
    raise RequestError("inputs must be a string, a pair of strings, or a list of [string] and [string, string]")
