"""`RestModel`, and the server around it."""

import json
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

from keras_bert_layers.cli.local_server import make_server
from keras_bert_layers.cli.serve import RestModel, find_export

PREDICT = "/v1/models/films:predict"


@pytest.fixture(scope="module")
def model(saved_model):
    return RestModel(saved_model, name="films", version=3)


def ask(model, body, status=200):
    answer = model.answer("POST", PREDICT, body if isinstance(body, bytes) else json.dumps(body).encode())
    assert answer.status == status, answer.body
    return json.loads(answer.body)


def test_answers(model):
    texts = ["a good film", "bad"]
    columns = ask(model, {"inputs": {"text": texts}})["outputs"]
    assert len(columns["label"]) == 2
    assert np.shape(columns["probabilities"]) == (2, 3)
    assert ask(model, {"inputs": texts})["outputs"] == columns
    rows = ask(model, {"instances": [{"text": text} for text in texts]})["predictions"]
    assert [row["label"] for row in rows] == columns["label"]
    assert ask(model, {"instances": texts})["predictions"] == rows
    ids = ask(model, {"inputs": texts, "signature_name": "tokenize"})["outputs"]
    logits = ask(model, {"inputs": ids, "signature_name": "token_ids"})["outputs"]  # one output has no name
    assert np.shape(logits) == (2, 3)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "JSON Parse error: "),
        (b"[1]", "the request must be a JSON object"),
        ({}, "send either inputs or instances"),
        ({"inputs": {"words": ["a"]}}, "takes the inputs ['text']. Received: ['words']"),
        ({"inputs": {"text": ["a", 7]}}, "input 'text' must be lists of string of equal lengths"),
        ({"inputs": {"text": "a"}}, "input 'text' must have the shape (None,). Received: ()"),
        ({"inputs": ["a"], "signature_name": "serve"}, "signature_name must be one of"),
        ({"instances": []}, "instances must be a list that is not empty"),
        ({"instances": [{"text": "a"}, {"words": "b"}]}, "instances must all have the same inputs"),
    ],
)
def test_bad_requests(model, body, message):
    found = ask(model, body, 400)
    assert list(found) == ["error"]
    assert message in found["error"]


def test_status_and_metadata(model):
    status = json.loads(model.answer("GET", "/v1/models/films", b"").body)["model_version_status"]
    assert [(one["version"], one["state"]) for one in status] == [("3", "AVAILABLE")]
    metadata = json.loads(model.answer("GET", "/v1/models/films/metadata", b"").body)
    assert metadata["model_spec"] == {"name": "films", "signature_name": "", "version": "3"}
    text = metadata["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]["text"]
    assert text["dtype"] == "DT_STRING"
    assert text["tensor_shape"] == {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    assert model.answer("GET", "/v1/models/other", b"").status == 404


def test_a_request_over_the_network(model):
    with make_server(0, model.answer, owner="serve") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url + PREDICT, b'{"inputs": ["a good film"]}', timeout=10) as response:
                assert response.headers["Content-Type"] == "application/json; charset=utf-8"
                assert len(json.load(response)["outputs"]["label"]) == 1
            with pytest.raises(urllib.error.HTTPError, match="400"):
                opener.open(url + PREDICT, b"{", timeout=10)
            foreign = urllib.request.Request(url + "/v1/models/films", headers={"Host": "example.com:80"})
            with pytest.raises(urllib.error.HTTPError, match="403"):
                opener.open(foreign, timeout=10)
            with pytest.raises(OSError, match=r"`serve`: cannot listen on port .*--port"):
                make_server(server.server_port, model.answer, owner="serve")
        finally:
            server.shutdown()
            thread.join()


def test_where_the_model_is(saved_model, tmp_path, run, error_line):
    assert find_export(saved_model) == (saved_model, 1)
    for version in (2, 10):
        (tmp_path / "saved_model" / str(version)).mkdir(parents=True)
        (tmp_path / "saved_model" / str(version) / "saved_model.pb").touch()
    assert find_export(tmp_path) == (tmp_path / "saved_model" / "10", 10)
    assert run("serve", tmp_path / "absent") == 2
    assert "`serve`: DIR must hold a SavedModel" in error_line()
    assert run("serve", tmp_path) == 2
    assert "is not a complete SavedModel" in error_line()
