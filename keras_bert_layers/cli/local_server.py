"""A small HTTP server for this machine only, with Python's standard library."""

import contextlib
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

HOST = "127.0.0.1"
_MOST_BYTES = 16_000_000  # of a request
# Of the header Host: another name is a page of another site that has found its way here.
_HOSTS = (HOST, "localhost")


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


def serve_until_interrupted(
    port: int, answer: Callable[[str, str, bytes], Answer], announce: Callable[[str], str], *, owner: str
) -> None:
    """Writes one line to stdout, and answers requests until Ctrl-C.

    Args:
        port: the port; 0 for any free one.
        answer: takes method, path and body of a request.
        announce: the line, from the server's address.
        owner: the command, for errors.

    Raises:
        OSError: the port is taken.
    """
    with make_server(port, answer, owner=owner) as server:
        sys.stdout.write(f"{announce(f'http://{HOST}:{server.server_port}')}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def make_server(port: int, answer: Callable[[str, str, bytes], Answer], *, owner: str) -> ThreadingHTTPServer:
    """A server that listens on this machine; `serve_forever` starts it.

    Args:
        port: the port; 0 for any free one.
        answer: takes method, path and body of a request.
        owner: the command, for errors.

    Raises:
        OSError: the port is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(answer("GET", self.path, b""))

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or int(length) > _MOST_BYTES:
                self.close_connection = True
                self._send(Answer('{"error": "the request must have a Content-Length of at most 16 MB"}', 413))
                return
            self._send(answer("POST", self.path, self.rfile.read(int(length))))

        def parse_request(self) -> bool:
            if not super().parse_request():
                return False
            if self.headers.get("Host", HOST).rpartition(":")[0] in ("", *_HOSTS):
                return True
            self.send_error(HTTPStatus.FORBIDDEN, "this server answers requests to 127.0.0.1 only")
            return False

        def _send(self, made: Answer) -> None:
            content = made.body.encode(errors="replace")
            with contextlib.suppress(ConnectionError):  # a client that has not waited
                self.send_response(made.status)
                self.send_header("Content-Type", f"{made.kind}; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Logs nothing: an error is in the status of the answer."""

    try:
        server = ThreadingHTTPServer((HOST, port), Handler)
    except (OSError, OverflowError) as error:
        raise OSError(f"`{owner}`: cannot listen on port {port}: {error}. Give another one with --port.") from error
    server.daemon_threads = True
    return server
