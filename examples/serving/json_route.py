"""Turns a function from a JSON object to an answer into a route: admission, body, time limit and errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from answerer import Answerer, RequestRecord
from limits import VARIABLES
from request_observer import NO_ANSWER
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from keras_bert_layers.export.json_request import RequestError, check_headers, parsed

logger = logging.getLogger("json_route")

Handle = Callable[[dict[str, Any], RequestRecord], Awaitable[Any]]
# The status and the content of an error, in the form of the route's clients.
ErrorForm = Callable[[RequestError], tuple[int, Any]]


def json_route(path: str, handle: Handle, error_form: ErrorForm, answerer: Answerer) -> Route:
    """A route for POST.

    Args:
        path: its path.
        handle: turns the JSON object of a request into the content of its answer.
        error_form: turns an error into a status and a content.
        answerer: admits requests, and has the limits.
    """

    async def endpoint(request: Request) -> JSONResponse:
        record: RequestRecord = request.state.record
        try:
            return JSONResponse(await _answer(request, record))
        except RequestError as error:
            failure = error
        except ClientDisconnect:  # nobody reads the answer; the log and the metrics do
            failure = RequestError("the client has gone", status=NO_ANSWER, code="client_gone")
        except Exception:  # a fault of the server, not of the request
            logger.exception("request %s failed", record.request_id)
            failure = RequestError("the server failed; its log says how", status=500, code="server_failed")
        record.error = failure.code
        status, content = error_form(failure)
        return JSONResponse(content, status, {"Retry-After": "1"} if status == 503 else None)

    async def _answer(request: Request, record: RequestRecord) -> Any:
        seconds = answerer.limits.seconds
        try:
            async with asyncio.timeout(seconds):
                try:
                    answerer.check_ready()
                except RequestError:
                    # A connection that is closed before its request was read may lose the answer.
                    async for _ in request.stream():
                        pass
                    raise
                check_headers(request.headers)
                body = await _body(request)  # half-sent ones take no place of those in progress
                with answerer.admit():
                    return await handle(body, record)
        except TimeoutError as error:
            message = f"a request must be answered within {seconds:g} seconds ({VARIABLES['seconds']}), and was not"
            raise RequestError(message, status=504, code="timeout") from error

    async def _body(request: Request) -> dict[str, Any]:
        """The JSON object. What exceeds the limit is read, but not kept."""
        chunks, size = [], 0
        async for chunk in request.stream():
            size += len(chunk)
            if size <= answerer.limits.num_bytes:
                chunks.append(chunk)
        answerer.limits.check("num_bytes", size, "the bytes of a request", status=413)
        return parsed(b"".join(chunks))

    return Route(path, endpoint, methods=["POST"])
