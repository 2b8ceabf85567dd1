"""A small HTTP server for this machine only, with Python's standard library.

One thread reads all connections, and another one runs the model, for one request at a time. So many slow clients cost a
few kilobytes each and not a thread, and a request that has not arrived in time, or is too large, or one too many, gets
an answer that states it. On SIGTERM and Ctrl-C, new requests are refused until the accepted ones are answered.
"""

import asyncio
import contextlib
import http.client
import io
import json
import logging
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import NamedTuple

from keras_bert_layers.export.json_request import MAX_BYTES, SECONDS, RequestError, check_headers

HOST = "127.0.0.1"
# Another name in the header Host is a page of another site that has found its way here (DNS rebinding).
_HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", re.IGNORECASE)
# A program on this machine sends a request at once.
_READ_SECONDS = 5.0
# Each holds a body of at most `MAX_BYTES`.
_MAX_CONNECTIONS = 512
# Requests that have arrived, and wait for the model or are with it.
_MAX_WAITING = 64
_MAX_HEAD_BYTES = 32 * 1024
_DRAIN_POLL_SECONDS = 0.02
# After the last answer of the model, for the clients that are refused meanwhile.
_LINGER_SECONDS = 1.0

logger = logging.getLogger(__name__)


class Answer(NamedTuple):
    """An HTTP response.

    Args:
        body: the content.
        status: the HTTP status.
        kind: the content's type.
    """

    body: str
    status: int = HTTPStatus.OK
    kind: str = "application/json"


class _Request(NamedTuple):
    method: str
    path: str
    body: bytes


def error_answer(message: str, status: int) -> Answer:
    """An error in the form of TensorFlow Serving."""
    return Answer(json.dumps({"error": message[:500]}), status)


def serve_until_interrupted(
    port: int,
    answer: Callable[[str, str, bytes], Answer],
    announce: Callable[[str], str],
    *,
    owner: str,
    body: str = "application/json",
    show_error: Callable[[str, int], Answer] = error_answer,
) -> None:
    """Writes one line to stdout, and answers requests until Ctrl-C or SIGTERM.

    Args:
        port: the port; 0 for any free one.
        answer: as for `LocalServer`.
        announce: the line, from the server's address.
        owner: the command, for errors.
        body: as for `LocalServer`.
        show_error: as for `LocalServer`.

    Raises:
        OSError: the port is taken.
    """
    server = LocalServer(port, answer, owner=owner, body=body, show_error=show_error)
    sys.stdout.write(f"{announce(f'http://{HOST}:{server.port}')}\n")
    sys.stdout.flush()
    before = signal.getsignal(signal.SIGTERM)
    with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C, which does not wait
        server.run()
    if server.is_terminated:
        signal.signal(signal.SIGTERM, before)
        signal.raise_signal(signal.SIGTERM)


class LocalServer:
    """A server that listens on this machine; `run` starts it.

    Args:
        port: the port; 0 for any free one.
        answer: takes method, path and body of a request. A GET must be answered at once, for it does not wait for the
            model; the requests with POST are answered one by one, in another thread.
        owner: the command, for errors.
        body: the media type of the bodies that `answer` takes.
        show_error: makes the answer to a request that this class refuses, from a message and a status.

    Attributes:
        port: the port.
        is_terminated: whether SIGTERM has stopped it.

    Raises:
        OSError: the port is taken.
    """

    def __init__(
        self,
        port: int,
        answer: Callable[[str, str, bytes], Answer],
        *,
        owner: str,
        body: str = "application/json",
        show_error: Callable[[str, int], Answer] = error_answer,
    ):
        try:
            self._socket = socket.create_server((HOST, port))
        except (OSError, OverflowError) as error:
            cure = "Give another one with --port."
            raise OSError(f"`{owner}`: cannot listen on port {port}: {error}. {cure}") from error
        self.port: int = self._socket.getsockname()[1]
        self.is_terminated = False
        self._answer, self._body_type, self._show_error = answer, body, show_error
        self._model = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._num_connections = self._num_waiting = 0
        self._is_draining = False
        self._started = threading.Event()

    def run(self) -> None:
        """Answers requests until `stop`, Ctrl-C or SIGTERM, and then those that it has accepted."""
        asyncio.run(self._run())

    def stop(self) -> None:
        """Ends `run`, which another thread is in."""
        self._started.wait()
        self._loop.call_soon_threadsafe(self._cancel)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        task: asyncio.Task[None] = asyncio.current_task()  # type: ignore[assignment]
        self._cancel = task.cancel
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # Windows, or not in the main thread
            self._loop.add_signal_handler(signal.SIGTERM, self._terminate)
        server = await asyncio.start_server(self._connected, sock=self._socket, limit=_MAX_HEAD_BYTES)
        self._started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:  # `stop`, SIGTERM, or the first Ctrl-C
            self._is_draining = True
            await self._wait_until(lambda: not self._num_waiting, SECONDS)
            # Those that have come since get their 503, and no reset; then no more are taken.
            await self._wait_until(lambda: not self._num_connections, _LINGER_SECONDS)
            server.close()
            await self._wait_until(lambda: not self._num_connections, _LINGER_SECONDS)
        finally:
            server.close()
            self._model.shutdown(wait=False, cancel_futures=True)

    async def _wait_until(self, is_done: Callable[[], bool], seconds: float) -> None:
        end = self._loop.time() + seconds
        while not is_done() and self._loop.time() < end:
            await asyncio.sleep(_DRAIN_POLL_SECONDS)

    def _terminate(self) -> None:
        self.is_terminated = True
        self._cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._num_connections += 1
        try:
            made = await self._answer_to(reader, writer)
            async with asyncio.timeout(SECONDS):
                await _send(writer, made)
                # A connection that is closed while its client still sends would lose the answer.
                while await reader.read(1 << 16):
                    pass
        except (OSError, TimeoutError, asyncio.CancelledError):  # the client has gone or does not read, or the end
            pass
        finally:
            self._num_connections -= 1
            writer.close()

    async def _answer_to(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answer:
        try:
            return await self._exchange(reader, writer)
        except RequestError as error:
            refused = str(error), error.status
        except TimeoutError:
            refused = f"a request must arrive within {_READ_SECONDS:g} seconds, and did not", 408
        except asyncio.IncompleteReadError:
            refused = "the request ends too early", 400
        except (asyncio.LimitOverrunError, http.client.HTTPException):
            refused = f"the headers must have at most 100 lines and {_MAX_HEAD_BYTES} bytes", 431
        except Exception:  # a fault of the server
            logger.exception("a request failed")
            refused = "the server failed; its log says how", 500
        return self._show_error(*refused)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answer:
        if self._num_connections > _MAX_CONNECTIONS:
            raise RequestError(f"connections must be at most {_MAX_CONNECTIONS}; try again", status=503)
        async with asyncio.timeout(_READ_SECONDS):
            request = await self._read(reader, writer)
        if self._is_draining:
            raise RequestError("the server is shutting down", status=503)
        if request.method == "GET":
            return self._answer(*request)
        if self._num_waiting >= _MAX_WAITING:
            raise RequestError(f"waiting requests must be at most {_MAX_WAITING}; try again", status=503)
        return await self._answer_of_model(request)

    async def _answer_of_model(self, request: _Request) -> Answer:
        self._num_waiting += 1
        started: list[float] = []
        arrived = self._loop.time()
        try:
            async with asyncio.timeout(SECONDS):
                return await self._loop.run_in_executor(self._model, self._run_model, request, started)
        except TimeoutError:
            refused = self._late(arrived, started)
            logger.warning("%s: %s", request.path, refused)
            raise refused from None
        finally:
            self._num_waiting -= 1

    def _run_model(self, request: _Request, started: list[float]) -> Answer:
        started.append(self._loop.time())
        return self._answer(*request)

    def _late(self, arrived: float, started: list[float]) -> RequestError:
        """The error of a request that was not answered in time, with the reason: the others, or itself."""
        waited = (started[0] if started else self._loop.time()) - arrived
        rule = f"a request must be answered within {SECONDS:g} seconds, and was not"
        if waited > SECONDS / 2:
            cause = f"the model was busy with other requests for {waited:.1f} of them; try again when there are fewer"
            return RequestError(f"{rule}: {cause}", status=503)
        cause = f"the model took more than {SECONDS - waited:.1f} seconds for this one; send fewer or shorter texts"
        return RequestError(f"{rule}: {cause}", status=504)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Request:
        """The next request; only a body that is taken is read."""
        line, _, rest = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")
        words = line.decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise RequestError("the first line must be METHOD PATH HTTP/1.1")
        headers = http.client.parse_headers(io.BytesIO(rest))
        method, path = words[0], words[1].partition("?")[0]
        self._check(method, headers)
        if method == "GET":
            return _Request(method, path, b"")
        lengths = headers.get_all("Content-Length", [])
        if len(lengths) != 1 or not re.fullmatch("[0-9]{1,18}", lengths[0]) or "Transfer-Encoding" in headers:
            raise RequestError("the request must have a Content-Length, once, and no Transfer-Encoding", status=411)
        if int(lengths[0]) > MAX_BYTES:
            rule = f"the bytes of a request must be at most {MAX_BYTES}"
            raise RequestError(f"{rule}. Received: {lengths[0]}", status=413)
        if headers.get("Expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return _Request(method, path, await reader.readexactly(int(lengths[0])))

    def _check(self, method: str, headers: http.client.HTTPMessage) -> None:
        if method not in ("GET", "POST"):
            raise RequestError(f"the method must be GET or POST. Received: {method[:20]}", status=405)
        hosts = headers.get_all("Host", [])
        if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
            raise RequestError(f"this server answers requests to {HOST} and localhost only", status=403)
        if headers.get("Origin", f"http://{hosts[0]}") != f"http://{hosts[0]}":
            raise RequestError("pages of other sites are not answered (Origin)", status=403)
        check_headers(headers, body=self._body_type)


async def _send(writer: asyncio.StreamWriter, made: Answer) -> None:
    content = made.body.encode(errors="replace")
    lines = [
        f"HTTP/1.1 {made.status} {HTTPStatus(made.status).phrase}",
        f"Content-Type: {made.kind}; charset=utf-8",
        f"Content-Length: {len(content)}",
        "Connection: close",
        *{503: ["Retry-After: 1"], 405: ["Allow: GET, POST"]}.get(made.status, []),
    ]
    writer.write("".join(f"{line}\r\n" for line in [*lines, ""]).encode() + content)
    await writer.drain()
    writer.write_eof()
