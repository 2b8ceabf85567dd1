"""Ends the server after its requests: on SIGTERM, new ones are refused and running ones are completed."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from typing import Any

from answerer import Answerer

logger = logging.getLogger("drain")

POLL_SECONDS = 0.05
# A proxy that asks /ready each second has seen the end by then.
NOTICE_SECONDS = 2.0


class Drain:
    """Stands in front of the handler that the server of this process (uvicorn) has for SIGTERM.

    uvicorn closes its socket at once, so that new requests see a broken connection. Here they are answered with 503
    until the running ones are completed.

    Args:
        answerer: refuses new requests, and counts those in progress.
    """

    def __init__(self, answerer: Answerer):
        self._answerer = answerer
        self._server_ends: Any = None
        self._task: asyncio.Task[None] | None = None

    def install(self) -> None:
        """Takes the place of the handler; call it in the event loop of the main thread."""
        self._server_ends = signal.getsignal(signal.SIGTERM)
        if callable(self._server_ends):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._begin)

    def _begin(self) -> None:
        if not self._answerer.draining:
            self._answerer.draining = True
            logger.info("draining: %d requests in progress", self._answerer.num_under_way)
            self._task = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        await asyncio.sleep(NOTICE_SECONDS)  # who sends meanwhile gets 503, and not a broken connection
        end = time.monotonic() + self._answerer.limits.drain_seconds
        while self._answerer.num_under_way and time.monotonic() < end:
            await asyncio.sleep(POLL_SECONDS)
        self._server_ends(signal.SIGTERM, None)
        if self._answerer.num_under_way:
            logger.error("%d requests were not completed in time", self._answerer.num_under_way)
            self._server_ends(signal.SIGINT, None)  # uvicorn waits no longer
