"""Gives each request an id, one line of the log, and its place in the metrics."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable
from typing import Any

from answerer import RequestRecord
from metrics import Metrics

logger = logging.getLogger("requests")

PROBES = ("/health", "/ready", "/metrics")
NO_ANSWER = 499  # the client has gone
_REQUEST_ID = re.compile(rb"[\w.:-]{1,64}")


class RequestObserver:
    """ASGI middleware.

    Args:
        app: the application.
        routes: paths that are named in the log and the metrics; any other is `"other"`.
        metrics: what counts.
        is_draining: whether clients are asked to close their connections.
    """

    def __init__(self, app: Any, *, routes: frozenset[str], metrics: Metrics, is_draining: Callable[[], bool]):
        self._app = app
        self._routes = routes
        self._metrics = metrics
        self._is_draining = is_draining

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record, status, start = RequestRecord(_request_id(scope)), NO_ANSWER, time.perf_counter()
        scope.setdefault("state", {})["record"] = record

        async def observed_send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", record.request_id.encode())]
                if self._is_draining():
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        try:
            await self._app(scope, receive, observed_send)
        finally:
            seconds = time.perf_counter() - start
            route = scope["path"] if scope["path"] in self._routes else "other"
            self._metrics.request(route, status, seconds)
            if route not in PROBES:
                _log(scope["method"], route, status, seconds, record)


def _log(method: str, route: str, status: int, seconds: float, record: RequestRecord) -> None:
    fields = {
        "request_id": record.request_id,
        "method": method,
        "route": route,
        "status": status,
        "rows": record.rows,
        "tokens": record.tokens,
        "milliseconds": round(1000 * seconds, 2),
    }
    logger.info("request", extra={"fields": fields | ({"error": record.error} if record.error else {})})


def _request_id(scope: Any) -> str:
    """The proxy's or the client's, if it has the form of one."""
    given = dict(scope["headers"]).get(b"x-request-id", b"")
    return given.decode() if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
