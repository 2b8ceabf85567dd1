"""Operation of the server: limits, metrics, logs, probes and shutdown, with functions in place of a model."""

import json
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import requests

pytest.importorskip("bentoml", reason="the extra `serving` brings it, and with it the ASGI server")

pytestmark = pytest.mark.serving

SECRET = "my private words"


class Version:
    """Answers a text with its length; `gate` holds it up, and `bad` texts are refused."""

    number, max_length, card, signature_def = 1, 64, {}, {}

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.steps = []

    def check(self, signature, inputs):
        texts = inputs["text"] if isinstance(inputs, dict) else inputs
        return {"text": np.array([text.encode() for text in texts], object)}

    def answer(self, signature, columns):
        rows = columns["text"].tolist()
        self.steps.append(len(rows))
        assert self.gate.wait(120)
        if any(row.startswith(b"bad") for row in rows):
            raise ValueError(f"the model refuses {rows}")
        return [{"length": len(row)} for row in rows]


class Model:
    def __init__(self):
        self.current = Version()

    def versions(self):
        return {1: "AVAILABLE"}


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def start(model):
    """Starts a server with given limits; returns its address, and the answerer behind it."""
    import contextlib

    from application import make_application
    from application_server import serving
    from limits import Limits

    with contextlib.ExitStack() as stack:

        def start(**limits):
            application = make_application(model, "lengths", Limits(**{"seconds": 120.0} | limits))
            return stack.enter_context(serving(application)), application.state.answerer

        yield start
        model.current.gate.set()


def post(url, *texts, **options):
    return requests.post(f"{url}/v1/models/lengths:predict", json={"inputs": list(texts)}, timeout=120, **options)


def metrics(url):
    """Name with labels -> value, as Prometheus's own parser reads them."""
    from prometheus_client.parser import text_string_to_metric_families

    families = text_string_to_metric_families(requests.get(f"{url}/metrics", timeout=120).text)
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples
    }


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("limits", "texts", "status", "error"),
    [
        ({"num_bytes": 40}, ["x" * 30], 413, "the bytes of a request must be at most 40 (MAX_BYTES). Received: 46"),
        ({"rows": 2}, ["a"] * 3, 400, "the rows of a request must be at most 2 (MAX_ROWS). Received: 3"),
        (
            {"text_tokens": 10},
            ["a", "x" * 44],
            400,
            "the tokens of a text (estimated from its bytes) must be at most 10 (MAX_TEXT_TOKENS). Received: 11",
        ),
        (
            {"tokens": 130},
            ["x" * 1000, "y" * 1000, "z"],  # the model reads 64 of the long ones
            400,
            "the tokens of a request (estimated from its bytes) must be at most 130 (MAX_TOKENS). Received: 131",
        ),
    ],
)
def test_limits(start, limits, texts, status, error):
    url, _ = start(**limits)
    response = post(url, *texts)
    assert (response.status_code, response.json()) == (status, {"error": error})
    assert post(url, "a").status_code == 200


def test_a_body_above_the_limit_is_read_out(start):
    """A client that still sends when it is refused would see a broken connection instead of the answer."""
    url, answerer = start(num_bytes=1000)
    response = requests.post(f"{url}/embed", data=iter([b"x" * 2**20] * 16), timeout=120)
    assert response.status_code == 413
    assert response.json() == {
        "error": f"the bytes of a request must be at most 1000 (MAX_BYTES). Received: {2**24}",
        "error_type": "Validation",
    }
    wait_for(lambda: answerer.num_under_way == 0)


def test_a_request_takes_only_its_time(start, model):
    url, answerer = start(seconds=0.3)
    model.current.gate.clear()
    response = post(url, "a")
    words = "a request must be answered within 0.3 seconds (REQUEST_SECONDS), and was not"
    assert (response.status_code, response.json()) == (504, {"error": words})
    waiting = requests.post(f"{url}/v1/embeddings", data=slow_body(), timeout=120)
    assert (waiting.status_code, waiting.json()["error"]["code"]) == (504, "timeout")
    model.current.gate.set()
    wait_for(lambda: post(url, "a").status_code == 200)
    wait_for(lambda: answerer.num_under_way == 0)


def slow_body():
    yield b"{"
    time.sleep(0.6)
    yield b"}"


def test_a_full_queue(start, model):
    url, answerer = start(waiting=2)
    model.current.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        accepted = [pool.submit(post, url, "a") for _ in range(2)]
        wait_for(lambda: answerer.num_under_way == 2)
        refused = post(url, "b")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert refused.json()["error"] == "requests in progress must be at most 2 (MAX_WAITING). Received: 3"
        other = requests.post(f"{url}/embed", json={"inputs": "a"}, timeout=120)
        assert (other.status_code, other.json()["error_type"]) == (503, "Overloaded")
        model.current.gate.set()
        assert [request.result(120).status_code for request in accepted] == [200, 200]


def test_steps_queue_and_requests_are_counted(start, model):
    url, answerer = start(batch_tokens=40)
    model.current.gate.clear()
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(post, url, "a")
        wait_for(lambda: model.current.steps == [1])
        others = [pool.submit(post, url, "x" * 28) for _ in range(8)]  # 10 tokens each
        wait_for(lambda: len(answerer.batcher) == 8)
        found = metrics(url)
        assert found["text_service_queue_requests",] == 8
        assert found["text_service_requests_in_progress",] == 9
        model.current.gate.set()
        assert {request.result(120).status_code for request in [first, *others]} == {200}
    assert model.current.steps == [1, 4, 4]
    assert post(url, "bad").status_code == 400
    requests.get(f"{url}/nowhere/{SECRET}", timeout=120)
    found = metrics(url)
    route = ("route", "/v1/models/lengths:predict")
    assert found["text_service_requests_total", route, ("status", "200")] == 9
    assert found["text_service_requests_total", route, ("status", "400")] == 1
    assert found["text_service_requests_total", ("route", "other"), ("status", "404")] == 1
    assert found["text_service_request_seconds_count", route] == 10
    assert found["text_service_step_rows_sum",] == 10
    assert found["text_service_step_tokens_sum",] == 3 + 8 * 10 + 3
    assert found["text_service_step_tokens_bucket", ("le", "32.0")] == 2
    assert found["text_service_queue_requests",] == 0
    assert found["process_resident_memory_bytes",] > 0


@pytest.fixture
def lines():
    """The lines of the log, as JSON."""
    from json_log import JsonFormatter

    class Lines(logging.Handler):
        def __init__(self):
            super().__init__()
            self.setFormatter(JsonFormatter())
            self.found = []

        def emit(self, record):
            self.found.append(json.loads(self.format(record)))

    handler, root = Lines(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler.found
    root.removeHandler(handler)
    root.setLevel(level)


def test_one_line_per_request_without_texts(start, lines, model):
    url, _ = start(rows=2)
    ours = {"X-Request-ID": "proxy-7"}
    assert post(url, SECRET, "b", headers=ours).headers["X-Request-ID"] == "proxy-7"
    made = post(url, f"bad {SECRET}", headers={"X-Request-ID": f"{SECRET}!"}).headers["X-Request-ID"]
    assert len(made) == 32
    post(url, *[SECRET] * 3)
    requests.post(f"{url}/embed", data=f'{{"inputs": "{SECRET}"', timeout=120)
    requests.post(f"{url}/{SECRET}", json={"inputs": SECRET}, timeout=120)
    for probe in ("health", "ready", "metrics"):
        assert requests.get(f"{url}/{probe}", timeout=120).status_code == 200
    found = [line for line in lines if line["logger"] == "requests"]
    assert all(line["time"] and line["level"] == "INFO" and line["milliseconds"] >= 0 for line in found)
    assert [(line["route"], line["status"], line["rows"], line["tokens"], line.get("error")) for line in found] == [
        ("/v1/models/lengths:predict", 200, 2, 10, None),
        ("/v1/models/lengths:predict", 400, 1, 8, "refused_by_model"),
        ("/v1/models/lengths:predict", 400, 3, 21, "too_many_rows"),
        ("/embed", 422, 0, 0, "no_json"),
        ("other", 404, 0, 0, None),
    ]
    assert [line["request_id"] for line in found][:2] == ["proxy-7", made]
    assert SECRET not in json.dumps(lines)


def test_a_fault_of_the_server_is_logged_and_not_shown(start, lines, model):
    url, _ = start()
    model.current.check = lambda *_: 1 / 0
    response = post(url, SECRET)
    assert (response.status_code, response.json()) == (500, {"error": "the server failed; its log says how"})
    assert any("ZeroDivisionError" in line.get("traceback", "") for line in lines)


def test_other_paths_and_methods(start):
    url, _ = start()
    for method, path, status in [
        ("GET", "nowhere", 404),
        ("POST", "health", 405),
        ("GET", "embed", 405),
        ("GET", "v1/models/lengths:predict", 405),
        ("GET", "v1/models/other", 404),
        ("POST", "v1/models/other:predict", 404),
    ]:
        response = requests.request(method, f"{url}/{path}", timeout=120)
        assert response.status_code == status, path
        assert list(response.json()) == ["error"]


def test_probes(start, model):
    url, answerer = start()
    assert requests.get(f"{url}/ready", timeout=120).json() == {"ready": True, "loaded": True, "draining": False}
    version, model.current = model.current, None
    assert requests.get(f"{url}/health", timeout=120).status_code == 200
    assert requests.get(f"{url}/ready", timeout=120).status_code == 503
    assert post(url, "a").json() == {"error": "no version of the model is loaded yet"}
    model.current = version
    answerer.draining = True
    response = requests.get(f"{url}/ready", timeout=120)
    assert (response.status_code, response.headers["Connection"]) == (503, "close")
    response = post(url, "a")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert response.json() == {"error": "the server is shutting down"}


def test_none_is_lost_and_none_is_mixed_up(start, model):
    """Mixed lengths from 1, 8 and 32 clients: each gets the answer to its own texts."""
    url, _ = start(batch_tokens=100)

    def client(seed):
        draw = np.random.default_rng(seed)
        lengths = [draw.integers(0, 300, 3).tolist() for _ in range(4)]
        with requests.Session() as session:
            for row in lengths:
                body = {"inputs": ["x" * length for length in row]}
                answer = session.post(f"{url}/v1/models/lengths:predict", json=body, timeout=120).json()
                if answer != {"outputs": row}:
                    return f"{row}: {answer}"
        return ""

    for number in (1, 8, 32):
        with ThreadPoolExecutor(number) as pool:
            assert set(pool.map(client, range(number))) == {""}


def test_the_drain_ends_on_its_own(start, model):
    """What cannot be completed in time is given up; `test_service.py` has the usual end."""
    import asyncio

    from drain import Drain

    _, answerer = start(drain_seconds=0.2)
    told = []
    drain = Drain(answerer)
    drain._server_ends = lambda number, frame: told.append(number.name)

    async def end():
        drain._begin()
        drain._begin()  # a second signal changes nothing
        await drain._task

    asyncio.run(end())
    assert told == ["SIGTERM"]
    answerer.draining, answerer.num_under_way = False, 1
    asyncio.run(end())
    assert told == ["SIGTERM", "SIGTERM", "SIGINT"]
    answerer.num_under_way = 0


def test_a_client_that_leaves_is_left_out(start, model):
    url, answerer = start()
    model.current.gate.clear()
    body = b'{"inputs": ["a"]}'
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as gone:
        head = f"POST /v1/models/lengths:predict HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        gone.sendall(head.encode() + body)
        wait_for(lambda: answerer.num_under_way == 1)
    model.current.gate.set()
    wait_for(lambda: answerer.num_under_way == 0)
    assert post(url, "b").status_code == 200


def test_a_client_that_leaves_while_it_sends_is_no_fault_of_the_server(start, lines):
    url, _ = start()
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as gone:
        gone.sendall(b'POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"inputs": ')
    wait_for(lambda: any(line["logger"] == "requests" for line in lines))
    assert {line["level"] for line in lines} == {"INFO"}
    assert [(line["status"], line["error"]) for line in lines if line["logger"] == "requests"] == [(499, "client_gone")]
