"""`LocalServer`, with a function in place of a model."""

import json
import select
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import hostile_requests
import pytest
from hostile_requests import Case, http

from keras_bert_layers.cli import local_server
from keras_bert_layers.cli.local_server import Answer, LocalServer

GOOD = http(b'{"inputs": ["a"]}', path="/")
STATUS = http(b"", path="/", method="GET")
# Until a test gives up; what is said of time must not depend on how busy the machine is.
PATIENCE = 240


class Model:
    """Answers with the length of the body; `gate` holds it up."""

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.num_running = 0

    def answer(self, method, path, body):
        if method == "POST":
            self.num_running += 1
            assert self.num_running == 1, "one at a time"
            self.gate.wait(PATIENCE)
            self.num_running -= 1
        if path == "/fault":
            raise ZeroDivisionError
        return Answer(json.dumps([method, path, len(body)]))


@pytest.fixture
def model():
    model = Model()
    yield model
    model.gate.set()


@pytest.fixture
def start(model, monkeypatch):
    """Starts a server, without limits of time but for those that a test sets later; returns its port."""
    monkeypatch.setattr(local_server, "SECONDS", PATIENCE)
    monkeypatch.setattr(local_server, "_READ_SECONDS", PATIENCE)
    started = []

    def start(**options):
        server = LocalServer(0, model.answer, owner="serve", **options)
        thread = threading.Thread(target=server.run)
        thread.start()
        started.append((server, thread))
        return server.port

    yield start
    model.gate.set()
    for server, thread in started:
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def send(port, *parts):
    found = hostile_requests.send(port, Case(parts), timeout=PATIENCE)
    return found.status, json.loads(found.body)


def test_a_client_of_the_standard_library(start):
    url = f"http://127.0.0.1:{start()}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/a?b=c", b"{}", timeout=PATIENCE) as response:
        assert response.headers["Content-Type"] == "application/json; charset=utf-8"
        assert json.load(response) == ["POST", "/a", 2]
    with opener.open(url, timeout=PATIENCE) as response:
        assert json.load(response) == ["GET", "/", 0]
    foreign = urllib.request.Request(url, headers={"Host": "example.com"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        opener.open(foreign, timeout=PATIENCE)


def test_a_taken_port(start):
    with pytest.raises(OSError, match=r"`serve`: cannot listen on port .*--port"):
        LocalServer(start(), print, owner="serve")


def test_requests_one_by_one_and_no_more_than_can_wait(start, model, monkeypatch):
    monkeypatch.setattr(local_server, "_MAX_WAITING", 3)
    arrived, answer_of_model = threading.Semaphore(0), LocalServer._answer_of_model

    async def counted(server, request):
        arrived.release()
        return await answer_of_model(server, request)

    monkeypatch.setattr(LocalServer, "_answer_of_model", counted)
    port = start()
    model.gate.clear()
    with ThreadPoolExecutor(3) as pool:
        accepted = [pool.submit(send, port, GOOD) for _ in range(3)]
        assert all(arrived.acquire(timeout=PATIENCE) for _ in accepted)
        assert send(port, STATUS)[0] == 200
        assert send(port, GOOD) == (503, {"error": "waiting requests must be at most 3; try again"})
        model.gate.set()
        assert [request.result(PATIENCE)[0] for request in accepted] == [200] * 3
    assert send(port, GOOD)[0] == 200


def test_many_slow_clients_hold_nobody_up(start):
    port, before = start(), threading.active_count()
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
    try:
        for connection in slow:
            connection.sendall(GOOD[:-3])
        assert send(port, GOOD)[0] == 200
        assert threading.active_count() <= before + 1  # the one of the model
        assert select.select(slow, [], [], 0)[0] == [], "all of them still send"
    finally:
        for connection in slow:
            connection.close()


def test_a_request_must_arrive_in_time(start, monkeypatch):
    port = start()
    monkeypatch.setattr(local_server, "_READ_SECONDS", 0.2)
    for sent in (b"", GOOD[:20], GOOD[:-3]):
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
            connection.sendall(sent)
            assert connection.recv(100).startswith(b"HTTP/1.1 408 ")


def test_too_many_connections(start, monkeypatch):
    monkeypatch.setattr(local_server, "_MAX_CONNECTIONS", 2)
    port = start()
    with socket.create_connection(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)):
        assert send(port, GOOD) == (503, {"error": "connections must be at most 2; try again"})


def test_a_request_takes_only_its_time(start, model, monkeypatch, caplog):
    port = start()
    monkeypatch.setattr(local_server, "SECONDS", 0.2)
    model.gate.clear()
    status, body = send(port, GOOD)
    rule = "a request must be answered within 0.2 seconds, and was not: the model "
    assert (status, body["error"][: len(rule)]) == (504, rule)
    assert body["error"].endswith(" seconds for this one; send fewer or shorter texts")
    status, body = send(port, GOOD)  # the first one is still with the model
    assert (status, body["error"][: len(rule)]) == (503, rule)
    assert "was busy with other requests for 0.2 of them; try again when there are fewer" in body["error"]
    assert [record.getMessage()[:4] for record in caplog.records] == ["/: a", "/: a"]
    model.gate.set()
    monkeypatch.setattr(local_server, "SECONDS", PATIENCE)
    assert send(port, GOOD)[0] == 200


def test_errors_in_another_form(start):
    port = start(show_error=lambda message, status: Answer(f'["{message}"]', status, "text/html"))
    assert send(port, http(b"", path="/", method="PUT")) == (405, ["the method must be GET or POST. Received: PUT"])


def test_a_fault_is_logged_and_not_shown(start, caplog):
    port = start()
    assert send(port, http(b"{}", path="/fault")) == (500, {"error": "the server failed; its log says how"})
    assert "ZeroDivisionError" in caplog.text


def test_other_bodies(start):
    port = start(body="application/x-www-form-urlencoded")
    status, body = send(port, GOOD)
    assert (status, body["error"][:49]) == (415, "Content-Type must be application/x-www-form-urlen")
    assert send(port, http(b"a=b", "Content-Type: application/x-www-form-urlencoded", path="/"))[0] == 200


PROGRAM = """
import signal, sys
from keras_bert_layers.cli import local_server
from keras_bert_layers.cli.local_server import Answer, serve_until_interrupted

local_server.SECONDS = 240

def answer(method, path, body):
    if method == "POST":
        print("running", flush=True)
        sys.stdin.readline()
    return Answer("{}")

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started these tests with it ignored
serve_until_interrupted(0, answer, str, owner="serve")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 0)])
def test_the_end_answers_what_was_accepted(number, code):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], **pipes) as process:
        try:
            port = int(process.stdout.readline().rpartition(":")[2])
            with ThreadPoolExecutor(9) as pool, socket.create_connection(("127.0.0.1", port)) as slow:
                slow.sendall(GOOD[:20])
                accepted = pool.submit(send, port, GOOD)
                assert process.stdout.readline() == "running\n"
                process.send_signal(number)
                while (status := send(port, STATUS)) == (200, {}):  # the signal comes soon
                    pass
                assert status == send(port, GOOD) == (503, {"error": "the server is shutting down"})
                begun = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
                for connection in begun:
                    connection.sendall(GOOD[:20])
                assert not accepted.done()
                process.stdin.close()
                assert accepted.result(PATIENCE) == (200, {})
                for connection in begun:
                    with connection:
                        connection.sendall(GOOD[20:])
                        assert connection.recv(100).startswith(b"HTTP/1.1 503 "), "refused, and not reset"
                assert process.wait(PATIENCE) == code
            assert process.stderr.read() == ""
        finally:
            process.kill()
