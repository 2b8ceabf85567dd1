"""`examples/serving/rest_client.py`, against a server that speaks TensorFlow Serving's REST interface."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "serving"
MODEL = "/v1/models/sentiment"
GOOD = (200, {"outputs": {"label": ["good", "bad"], "probabilities": [[0.1, 0.9], [0.8, 0.2]]}})
BUSY = (503, {"error": "The batch scheduling queue to which this task was submitted is full"})


class Answers(BaseHTTPRequestHandler):
    """Gives the answers of a list in their order, and records the requests."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def do_GET(self):
        self.reply(None)

    def reply(self, body):
        self.server.asked.append((self.command, self.path, body))
        answer = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        if answer is None:  # a server that dies in the middle
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status, content, *more = answer
        time.sleep(more[0] if more and isinstance(more[0], float) else 0)
        encoded = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(encoded)))
        if more and isinstance(more[0], dict):
            for name, value in more[0].items():
                self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # a client that gave up
            self.wfile.write(encoded)

    def log_message(self, *_):
        pass


@pytest.fixture
def module(import_example):
    return import_example("rest_client")


@pytest.fixture
def serve():
    """Starts a server with a list of answers; the last one is repeated."""
    servers = []

    def start(*answers):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        server.answers, server.asked, server.daemon_threads = list(answers), [], True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        server.url = f"http://127.0.0.1:{server.server_port}"
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def client_of(module):
    clients = []

    def make(server, **options):
        options = {"timeout": 120.0, "pause": 0.01, "deadline": 240.0, **options}
        clients.append(module.RestClient(server.url, "sentiment", **options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def noted_pauses(module, monkeypatch):
    """The client's pauses from now on, which take no time."""
    pauses = []
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append))
    return pauses


def test_asks_a_signature(serve, client_of):
    server = serve(GOOD)
    assert client_of(server).predict({"text": ["Good.", "Bad."]}) == GOOD[1]["outputs"]
    body = {"signature_name": "serving_default", "inputs": {"text": ["Good.", "Bad."]}}
    assert server.asked == [("POST", f"{MODEL}:predict", body)]


def test_asks_another_signature_and_version(serve, client_of):
    server = serve(GOOD)
    client_of(server).predict({"text": ["Good."]}, "tokenize", version=7)
    _, path, body = server.asked[0]
    assert path == f"{MODEL}/versions/7:predict"
    assert body["signature_name"] == "tokenize"


def test_an_only_output_has_no_name_over_rest(serve, client_of):
    assert client_of(serve((200, {"outputs": [[0.5]]}))).predict({"text": ["Good."]}) == {"output": [[0.5]]}


@pytest.mark.parametrize("passing", [BUSY, (429, {}), (502, b"<html>"), (504, {"error": "Timed out"}), None])
def test_what_passes_is_tried_again(serve, client_of, passing):
    server = serve(passing, passing, GOOD)
    assert client_of(server).predict({"text": ["Good."]}) == GOOD[1]["outputs"]
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_refusal_is_not_tried_again(serve, client_of, module, status):
    server = serve((status, {"error": "input text is missing"}))
    with pytest.raises(module.ServingError, match=rf"HTTP {status}: input text is missing$"):
        client_of(server).predict({"words": ["Good."]})
    assert len(server.asked) == 1


def test_tries_are_bounded(serve, client_of, module):
    server = serve(BUSY)
    with pytest.raises(module.ServingError, match="no answer after 3 tries. The last one: The batch scheduling queue"):
        client_of(server, attempts=3).predict({"text": ["Good."]})
    assert len(server.asked) == 3


def test_a_slow_server_is_given_up_in_time(serve, client_of, module):
    server = serve((200, {"outputs": {}}, 0.4))
    with pytest.raises(module.ServingError, match="no answer after . tries. The last one: ReadTimeout"):
        client_of(server, timeout=0.1, deadline=0.25, attempts=9).predict({"text": ["Good."]})
    assert len(server.asked) < 9


def test_pauses_grow(serve, client_of, module, monkeypatch):
    pauses = noted_pauses(module, monkeypatch)
    with pytest.raises(module.ServingError):
        client_of(serve(BUSY), pause=0.2, attempts=4).predict({"text": ["Good."]})
    assert len(pauses) == 3
    for pause, most in zip(pauses, (0.2, 0.4, 0.8), strict=True):
        assert most / 2 <= pause <= most


def test_waits_as_long_as_the_server_asks(serve, client_of, module, monkeypatch):
    pauses = noted_pauses(module, monkeypatch)
    client_of(serve((503, {}, {"Retry-After": "2"}), GOOD)).predict({"text": ["Good."]})
    assert pauses == [2.0]


def test_no_server(module):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = module.RestClient(f"http://127.0.0.1:{taken.getsockname()[1]}", "sentiment", pause=0.01, attempts=2)
        with pytest.raises(module.ServingError, match="no answer after 2 tries. The last one: ConnectionError"):
            client.predict({"text": ["Good."]})
        client.close()


def test_versions_and_waiting(serve, client_of, module):
    def states(*names):
        found = [{"version": str(n), "state": name} for n, name in enumerate(names, start=1)]
        return 200, {"model_version_status": found}

    client = client_of(serve(states("LOADING"), BUSY, states("LOADING", "AVAILABLE")))
    client.wait_until_ready(5)
    assert client.versions() == {1: "LOADING", 2: "AVAILABLE"}
    with pytest.raises(module.ServingError, match="no version was available after 0 s"):
        client_of(serve(states("LOADING"))).wait_until_ready(0)
    with pytest.raises(module.ServingError, match="was not ready after 0 s: .*HTTP 404: no such model"):
        client_of(serve((404, {"error": "no such model"}))).wait_until_ready(0)


def test_program(serve, tmp_path):
    (tmp_path / "pair.txt").write_text("Too long.\n", encoding="utf-8")
    server = serve((200, {"outputs": {"label": ["schön"]}}))
    command = [sys.executable, FOLDER / "rest_client.py", "--url", server.url, "--model", "sentiment", "Good."]
    finished = subprocess.run(
        [*command, "--input", f"text_pair={tmp_path / 'pair.txt'}"], capture_output=True, encoding="utf-8", check=False
    )
    assert finished.stdout == '{"label": ["schön"]}\n', finished.stderr
    assert server.asked[0][2]["inputs"] == {"text": ["Good."], "text_pair": ["Too long."]}
    server.answers[:] = [(400, {"error": "input text is missing"})]
    finished = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert finished.returncode == 1
    assert finished.stderr.startswith("rest_client: http://127.0.0.1:")
    assert finished.stderr.endswith("HTTP 400: input text is missing\n")
