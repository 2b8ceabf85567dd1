"""`examples/serving/service.py`: its answers, bad requests, new versions under load, and shutdown."""

import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import requests
from c_api.notes import note

pytestmark = pytest.mark.serving

TEXTS = ["a good film", "", "bad , bad night !", "a " * 300, "[SEP] [MASK] good"]

# Until a test gives up, on a busy machine too.
SECONDS = 240
# float32 in another order of sums, written as JSON.
ROUNDING = 1e-6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of models of the server that the tests of this file share, without a model yet."""
    folder = tmp_path_factory.mktemp("shared") / "models"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def started(start_shared_server, folder):
    """The server, before there is a model. Its limits of time are such that a busy machine keeps to them."""
    server = start_shared_server(folder, is_ready=False, REQUEST_SECONDS="240", DRAIN_SECONDS="240")
    wait_for(lambda: "holds no version that can be served yet" in server.output())
    wait_for(lambda: "initialized" in server.output())
    return server


@pytest.fixture(scope="module")
def server(started, folder, versions):
    """The server with the first version."""
    if not (folder / "sentiment").exists():
        shutil.copytree(versions / "first", folder / "copied")
        (folder / "sentiment").mkdir()
        (folder / "copied").rename(folder / "sentiment" / "1")
    wait_for(lambda: requests.get(f"{started.url}/readyz", timeout=SECONDS).status_code == 200)
    return started


def test_no_version_yet(started, request):
    """The first of the file, as the others put one there."""
    assert requests.get(f"{started.url}/readyz", timeout=SECONDS).status_code == 503
    response = post(started, ["a"])
    assert (response.status_code, response.json()["error"]) == (503, "no version of the model is loaded yet")
    server = request.getfixturevalue("server")
    assert post(server, ["a"]).status_code == 200


def test_answers_and_refusals(server, small_classifier):
    client = server.client()
    classifier = small_classifier(["bad", "good"])
    assert client.versions() == {1: "AVAILABLE"}
    assert requests.get(f"{server.url}/readyz", timeout=SECONDS).status_code == 200
    assert requests.get(f"{server.url}/livez", timeout=SECONDS).status_code == 200
    assert requests.get(f"{server.url}/ready", timeout=SECONDS).status_code == 200
    assert requests.get(f"{server.url}/health", timeout=SECONDS).status_code == 200
    assert requests.get(f"{server.url}/v1/models/other", timeout=SECONDS).status_code == 404
    response = requests.post(f"{server.url}/v1/models/other:predict", json={"inputs": ["a"]}, timeout=SECONDS)
    assert (response.status_code, response.json()["error"]) == (
        404,
        "no such model: 'other'; this server has 'sentiment'",
    )
    check_answers(client, classifier)
    check_refusals(server)
    check_metadata(server)
    check_page(server)
    check_bad_rows_among_good_ones(server, client)
    check_operations(server)


def check_operations(server):
    """What might differ under BentoML; `test_operations.py` has the rest."""
    metrics = requests.get(f"{server.url}/metrics", timeout=SECONDS).text.splitlines()
    assert "text_service_queue_requests 0.0" in metrics
    assert any(line.startswith("text_service_step_rows_sum ") for line in metrics)
    response = requests.post(f"{server.url}/predict", json={"inputs": "a good film"}, timeout=SECONDS)
    assert sorted(entry["label"] for entry in response.json()) == ["bad", "good"]

    def lines():
        return [line for line in server.output().splitlines() if response.headers["X-Request-ID"] in line]

    wait_for(lines)  # written after the answer
    assert json.loads(lines()[0])["route"] == "/predict"


def check_answers(client, classifier):
    answer, expected = client.predict({"text": TEXTS}), classifier.answer(TEXTS)
    assert answer["label"] == expected["label"].tolist()
    np.testing.assert_allclose(answer["probabilities"], expected["probabilities"], rtol=0, atol=ROUNDING)
    many = client.predict({"text": TEXTS * 20})  # more than one step of the model
    assert many["label"] == answer["label"] * 20
    ids = client.predict({"text": TEXTS * 20}, "tokenize")
    assert {len(row) for row in ids["token_ids"]} == {128}
    logits = client.predict({name: rows[:5] for name, rows in ids.items()}, "token_ids")["output"]
    assert (np.argmax(logits, axis=-1) == [["bad", "good"].index(label) for label in answer["label"]]).all()


def check_refusals(server):
    """One clear sentence each, and the server continues."""
    address = f"{server.url}/v1/models/sentiment:predict"
    named = {"token_ids": [[2, 9999, 3]], "segment_ids": [[0, 0, 0]], "padding_mask": [[1, 1, 1]]}
    uneven, deep = named | {"segment_ids": [[0, 0], [0]]}, named | {"segment_ids": [[0, [0]]]}
    for body, sentence in [
        ({}, "send either inputs or instances"),
        ({"inputs": {"text": ["a"]}, "instances": ["a"]}, "send either inputs or instances"),
        ({"inputs": {"words": ["a"]}}, "takes the inputs ['text']. Received: ['words']"),
        ({"inputs": {"text": ["a", 7]}}, "row 1 of the input 'text' must be a string. Received: 7"),
        ({"instances": [{"text": "a"}, {"words": "b"}]}, "instances must all have the same inputs"),
        ({"inputs": ["a"], "signature_name": "serve"}, "signature_name must be one of"),
        ({"inputs": named, "signature_name": "token_ids"}, "= 9999 is not in [0, 16)"),
        ({"inputs": uneven, "signature_name": "token_ids"}, "input 'segment_ids' must have rows of one length"),
        ({"inputs": deep, "signature_name": "token_ids"}, "row 0 of the input 'segment_ids' must be an integer"),
    ]:
        response = requests.post(address, json=body, timeout=SECONDS)
        assert response.status_code == 400, body
        assert sentence in response.json()["error"]
    for body in (b"{", b"[1]", b'{"inputs": ["\\ud800"]}', b"\xff\xfe"):
        response = requests.post(address, data=body, headers={"Content-Type": "application/json"}, timeout=SECONDS)
        assert response.status_code == 400, body
        assert list(response.json()) == ["error"]
    response = requests.post(address, data=b'{"inputs": [', timeout=SECONDS)
    assert response.json()["error"] == "JSON Parse error: Expecting value at offset: 12"
    assert "at offset" not in server.output(), "what is wrong with a request may quote it"
    assert "Traceback" not in server.output()
    response = requests.post(address, json={"instances": [{"text": "a"}, {"text": "b"}]}, timeout=SECONDS)
    assert [sorted(row) for row in response.json()["predictions"]] == [["bytes_cut", "label", "probabilities"]] * 2


def check_metadata(server):
    """The form of TensorFlow Serving's documentation: sizes are strings, and no field is left out."""
    metadata = requests.get(f"{server.url}/v1/models/sentiment/metadata", timeout=SECONDS).json()
    assert metadata["model_spec"] == {"name": "sentiment", "signature_name": "", "version": "1"}
    signatures = metadata["metadata"]["signature_def"]["signature_def"]
    assert {"serving_default", "token_ids", "tokenize"} <= set(signatures)
    serving = signatures["serving_default"]
    assert serving["method_name"] == "tensorflow/serving/predict"
    assert serving["inputs"]["text"] == {
        "dtype": "DT_STRING",
        "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False},
        "name": "serving_default_text:0",
    }
    assert [size["size"] for size in serving["outputs"]["probabilities"]["tensor_shape"]["dim"]] == ["-1", "2"]
    assert requests.get(f"{server.url}/v1/models/other/metadata", timeout=SECONDS).status_code == 404


def check_page(server):
    """BentoML's own page loads a tracker; this one loads nothing."""
    page = requests.get(server.url, timeout=SECONDS).text
    assert "POST /v1/models/NAME:predict" in page
    for trace in ("//", "<script", "<iframe", "<img", "<link"):
        assert trace not in page, page


def check_bad_rows_among_good_ones(server, client):
    """Requests that are wrong, in one stream with requests that are right."""
    expected = client.predict({"text": TEXTS})
    address = f"{server.url}/v1/models/sentiment:predict"
    wrong = [
        {"inputs": {"text": [None]}},
        {"inputs": {"text": ["a"], "text_pair": ["b"]}},
        {"inputs": [[2, 9999]], "signature_name": "token_ids"},
    ]

    def ask(number):
        if number % 2:
            return requests.post(address, json=wrong[number // 2 % len(wrong)], timeout=SECONDS).status_code
        return server.client(attempts=1).predict({"text": TEXTS})["label"]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(80)))
    assert answers[1::2] == [400] * 40
    assert answers[::2] == [expected["label"]] * 40
    note("bad requests", wrong=40, right=40)


def post(server, texts):
    body = {"inputs": {"text": texts}}
    return requests.post(f"{server.url}/v1/models/sentiment:predict", json=body, timeout=SECONDS)


class Load:
    """Threads that send requests repeatedly, without retries, and record the responses."""

    def __init__(self, server, num_threads, texts=TEXTS[:3]):
        self.labels, self.failures = [], []
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(server, texts)) for _ in range(num_threads)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        for thread in self._threads:
            thread.join(SECONDS)

    def _ask(self, server, texts):
        client = server.client(attempts=1)
        while not self._stopped.is_set():
            try:
                self.labels.append(set(client.predict({"text": texts})["label"]))
            except Exception as error:
                self.failures.append(error)
        client.close()


def wait_for(condition, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_a_new_version_under_load(server, folder, versions):
    models, folder, client = folder, folder / "sentiment", server.client()
    with Load(server, 4) as load:
        wait_for(lambda: len(load.labels) > 20)
        shutil.copytree(versions / "second", models / "copied")
        (models / "copied").rename(folder / "2")
        wait_for(lambda: client.versions().get(2) == "AVAILABLE")
        count = len(load.labels)
        wait_for(lambda: len(load.labels) > count + 20)
        (folder / "3").mkdir()  # one that is broken changes nothing
        (folder / "3" / "saved_model.pb").write_bytes(b"no graph")
        wait_for(lambda: "version 3 is not served" in server.output())
        shutil.rmtree(folder / "2")  # the way back
        wait_for(lambda: client.versions().get(1) == "AVAILABLE")
        count = len(load.labels)
        wait_for(lambda: len(load.labels) > count + 20)
    assert load.failures == []
    first, second = {"bad", "good"}, {"no", "yes"}
    assert all(labels <= first or labels <= second for labels in load.labels), "one request, one version"
    assert load.labels[0] <= first
    assert load.labels[-1] <= first
    assert any(labels <= second for labels in load.labels)
    note("new version", requests=len(load.labels) + len(load.failures), failures=len(load.failures))


def test_sigterm_answers_what_is_under_way(server):
    """The last of the file, as it ends the server that the tests share."""
    texts = ["a good bad film " * 40] * 1024  # seconds of work
    server.client().predict({"text": texts[:32]})
    with ThreadPoolExecutor(4) as pool:
        start = time.monotonic()
        answers = [pool.submit(server.client(attempts=1).predict, {"text": texts}) for _ in range(4)]
        in_progress = "text_service_requests_in_progress 4.0"
        wait_for(lambda: in_progress in requests.get(f"{server.url}/metrics", timeout=SECONDS).text.splitlines())
        server.terminate()
        wait_for(lambda: requests.get(f"{server.url}/ready", timeout=SECONDS).status_code == 503)
        refused = post(server, ["a"])
        assert (refused.status_code, refused.json()) == (503, {"error": "the server is shutting down"})
        assert not any(answer.done() for answer in answers)
        assert [len(answer.result(SECONDS)["label"]) for answer in answers] == [1024] * 4
        took = time.monotonic() - start
    server.process.wait(SECONDS)
    assert server.process.returncode == 0, server.output()
    note("drain", requests=4, texts=1024, seconds=took, code=server.process.returncode)
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{server.url}/readyz", timeout=SECONDS)
