"""An ONNX file in the server, beside Keras; the server's process loads no TensorFlow."""

import importlib.util
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest
import requests

pytestmark = pytest.mark.serving

# To import onnxruntime_extensions takes seconds where transformers is installed, which it imports.
for package in ("onnx", "onnxruntime_extensions"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}, which the extra `onnx` brings", allow_module_level=True)

TEXTS = ["a good film", "bad , unhappy night !", "", "a " * 300, "a\0 good film", "Ünhappy"]
# Sums in another order, by another library.
TOLERANCE = 1e-5


def post(server, path, body):
    request = Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=240) as response:
        return json.load(response)


@pytest.fixture(scope="module")
def task(small_classifier):
    return small_classifier(["bad", "good"])


@pytest.fixture(scope="module")
def server(task, start_shared_server, tmp_path_factory):
    """A server for `sentiment/1/model.onnx`, two requests at a time."""
    models = tmp_path_factory.mktemp("models")
    (models / "sentiment" / "1").mkdir(parents=True)
    task.export(models / "sentiment" / "1" / "model.onnx", format="onnx")
    return start_shared_server(models, MAX_WAITING="2", REQUEST_SECONDS="240")


def test_an_onnx_file_is_served_as_a_saved_model_is(task, server):
    found, expected = server.client().predict({"text": TEXTS}), task.serve(TEXTS)
    assert found["label"] == [label.decode() for label in expected["label"].numpy()]
    np.testing.assert_allclose(found["probabilities"], expected["probabilities"], atol=TOLERANCE, rtol=0)
    assert found["num_tokens"] == np.asarray(task.preprocessor(TEXTS)["padding_mask"]).sum(axis=1).tolist()
    predictions = post(server, "/predict", {"inputs": [[text] for text in TEXTS[:2]]})
    assert [row[0]["label"] for row in predictions] == found["label"][:2]
    with urlopen(f"{server.url}/v1/models/sentiment/metadata", timeout=240) as response:
        signatures = json.load(response)["metadata"]["signature_def"]["signature_def"]
    assert signatures["serving_default"]["inputs"]["text"]["dtype"] == "DT_STRING"
    maps = [Path("/proc", str(child.pid), "maps") for child in server.processes()]
    assert not any("libtensorflow" in path.read_text() for path in maps if path.is_file())


def test_many_texts_at_once_get_the_answers_they_get_alone(server):
    client = server.client()
    texts = TEXTS[:2] + ["good bad film " * length for length in range(1, 20)]
    together = client.predict({"text": texts})
    alone = [client.predict({"text": [text]}) for text in texts]
    assert together["label"] == [answer["label"][0] for answer in alone]
    assert together["num_tokens"] == [answer["num_tokens"][0] for answer in alone]
    found, expected = together["probabilities"], [answer["probabilities"][0] for answer in alone]
    np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=0)


def test_what_an_onnx_file_does_not_have_is_refused(server):
    client = server.client(attempts=1)
    with pytest.raises(Exception, match="must be 'serving_default' for an ONNX file"):
        client.predict({"text": ["a"]}, "tokenize")
    with pytest.raises(Exception, match="takes the inputs"):
        client.predict({"texts": ["a"]})
    with pytest.raises(Exception, match="must be a string"):
        client.predict({"text": [1]})


def test_too_many_requests_are_asked_to_try_again(server):
    """Of more than two at a time, which the other tests do not send."""
    texts = ["a good bad film " * 40] * 1024
    with ThreadPoolExecutor(6) as pool:
        body, address = {"inputs": {"text": texts}}, f"{server.url}/v1/models/sentiment:predict"
        refused = list(pool.map(lambda _: requests.post(address, json=body, timeout=240), range(6)))
        assert {response.status_code for response in refused} == {200, 503}
        told = next(response for response in refused if response.status_code == 503)
        assert told.json()["error"] == "requests in progress must be at most 2 (MAX_WAITING). Received: 3"
        assert told.headers["Retry-After"] == "1"
        patient = [pool.submit(server.client(attempts=99).predict, {"text": TEXTS}) for _ in range(6)]
        assert [len(answer.result(240)["label"]) for answer in patient] == [len(TEXTS)] * 6
