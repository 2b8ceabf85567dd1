"""The routes of the server, as one ASGI application; any ASGI server runs it.

- GET /health    the process is alive
- GET /ready     a version is loaded and warmed up, and the server is not shutting down
- GET /metrics   for Prometheus
- GET /          this list
"""

from __future__ import annotations

import html
from typing import Any

import embeddings_inference_routes as embeddings_inference
import openai_routes as openai
import tensorflow_routes as tensorflow
from answerer import Answerer
from limits import Limits
from metrics import Metrics
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from request_observer import RequestObserver
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route


def make_application(model: Any, name: str, limits: Limits) -> Starlette:
    """The application, with its `Answerer` as `state.answerer`.

    Args:
        model: a `ServedModel`.
        name: its name in routes.
        limits: what is accepted.
    """
    metrics = Metrics(queue_length=lambda: len(answerer.batcher), num_under_way=lambda: answerer.num_under_way)
    answerer = Answerer(model, limits, observe=metrics.step)
    routes = [
        *_operator_routes(answerer, metrics, name),
        *openai.openai_routes(answerer, name),
        *embeddings_inference.embeddings_inference_routes(answerer),
        *tensorflow.tensorflow_routes(answerer, name),
    ]
    observer = Middleware(
        RequestObserver,
        routes=frozenset(route.path for route in routes if "{" not in route.path),
        metrics=metrics,
        is_draining=lambda: answerer.draining,
    )
    application = Starlette(routes=routes, middleware=[observer], exception_handlers={HTTPException: _as_json})
    application.router.redirect_slashes = False  # a path with a slash behind it is another one
    application.state.answerer = answerer
    return application


def _operator_routes(answerer: Answerer, metrics: Metrics, name: str) -> list[Route]:
    async def health(_: Request) -> JSONResponse:
        return JSONResponse({"status": "alive"})

    async def ready(_: Request) -> JSONResponse:
        states = {"loaded": answerer.model.current is not None, "draining": answerer.draining}
        return JSONResponse({"ready": answerer.ready, **states}, 200 if answerer.ready else 503)

    async def metrics_page(_: Request) -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def page(_: Request) -> HTMLResponse:
        """Without a script and without another host."""
        title = f"{html.escape(name)}: an exported model"
        parts = (tensorflow.__doc__, openai.__doc__, embeddings_inference.__doc__, __doc__)
        text = "".join(f"- {part.partition('- ')[2]}" for part in map(str, parts))
        body = f"<h1>{title}</h1><pre>{html.escape(text)}</pre>"
        return HTMLResponse(f"<!DOCTYPE html><html lang=en><title>{title}</title>{body}</html>")

    return [
        Route("/health", health),
        Route("/ready", ready),
        Route("/metrics", metrics_page),
        Route("/", page),
    ]


async def _as_json(_: Request, error: HTTPException) -> JSONResponse:
    """No such path, or not by this method."""
    return JSONResponse({"error": f"{error.detail}; GET / lists the routes"}, error.status_code, error.headers)
