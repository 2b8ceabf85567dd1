"""A server for exported models, made with BentoML, that runs wherever TensorFlow does.

It has the routes of TensorFlow Serving, OpenAI's embeddings and text-embeddings-inference, so their clients and
`rest_client.py` work with it; `application.py` lists them. Use it to try a model, in tests, and on machines without
containers; prefer TensorFlow Serving where it runs.

    MODEL_BASE_PATH=models MODEL_NAME=sentiment BENTOML_DO_NOT_TRACK=True \
        bentoml serve --working-dir examples/serving service:TextService

It listens on 127.0.0.1:8501 and has no passwords: put a proxy that has them in front (docs/guides/serve.md).

Needs `pip install . bentoml` in a checkout. The model is $MODEL_BASE_PATH/$MODEL_NAME, a folder of versions.
`limits.py` names the variables of the limits.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import bentoml
from application import make_application
from drain import Drain
from json_log import log_as_json
from limits import Limits
from starlette.applications import Starlette

MODEL_NAME = os.environ.get("MODEL_NAME", "model")
MODEL_FOLDER = Path(os.environ.get("MODEL_BASE_PATH", "/models")).absolute() / MODEL_NAME
LIMITS = Limits.from_environment()

# BentoML's own timeout is the last resort. It keeps some kilobytes of every request for this time.
BENTOML_SECONDS = LIMITS.seconds + 2

log_as_json()
logger = logging.getLogger("service")


def make_model() -> Any:
    """The model. It is imported in the worker process; the parent process needs no TensorFlow."""
    from served_model import ServedModel

    return ServedModel(MODEL_FOLDER)


class Interface:
    """Stands for the application until the worker process has made it."""

    application: Starlette | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI."""
        await self.application(scope, receive, send)


interface = Interface()


@bentoml.service(
    name="text_service",
    workers=1,
    http={"host": "127.0.0.1", "port": 8501},
    traffic={"timeout": BENTOML_SECONDS},
    logging={"access": {"enabled": False}},
    # Its labels are the paths that clients send, without an end.
    metrics={"enabled": False},
)
@bentoml.asgi_app(interface, path="/")
class TextService:
    """Serves one exported model, and batches requests; each gets the answer that it would get alone.

    BentoML's own batching is not used: one failing request fails its whole batch, and the call between methods that it
    needs broke off under load (BentoML 1.4.39, `ServerDisconnectedError`).
    """

    def __init__(self) -> None:
        self.model = make_model()
        interface.application = make_application(self.model, MODEL_NAME, LIMITS)
        self.answerer = interface.application.state.answerer
        if not self.model.load_newest():
            logger.error("%s holds no version that can be served yet", MODEL_FOLDER)
        self.model.watch()
        self.drain = Drain(self.answerer)
        self.drain.install()

    async def __is_ready__(self) -> bool:
        """For GET /readyz, BentoML's name of /ready."""
        return self.answerer.ready

    @bentoml.on_shutdown
    def stop(self) -> None:
        """Stops looking for new versions; BentoML has finished all requests before."""
        self.model.stop()
