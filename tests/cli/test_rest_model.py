"""The models that `serve` asks: their answers, its refusals and its blocks."""

import json

import keras
import numpy as np
import pytest

from keras_bert_layers.checkpoints import save_huggingface
from keras_bert_layers.cli.rest_model import OnnxRestModel, SavedModelRestModel, TaskRestModel, _joined

PREDICT = "/v1/models/films:predict"


@pytest.fixture(scope="module")
def model(saved_model):
    return SavedModelRestModel(saved_model, name="films", version=3)


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
        ({"inputs": {"text": ["a", 7]}}, "row 1 of the input 'text' must be a string. Received: 7"),
        ({"inputs": {"text": "a"}}, "input 'text' must be a list that is not empty. Received: 'a'"),
        ({"inputs": [""] * 1025}, "the rows of a request must be at most 1024. Received: 1025. Send several requests."),
        ({"inputs": ["a" * 524289]}, "the bytes of a text must be at most 524288. Received: 524289"),
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


def test_wrong_ids_name_themselves(model):
    ids = {"token_ids": [[2, 9999, 3]], "segment_ids": [[0, 0, 0]], "padding_mask": [[1, 1, 1]]}
    error = ask(model, {"inputs": ids, "signature_name": "token_ids"}, 400)["error"]
    assert "the model refuses these ids, of the shapes {'" in error
    assert "'token_ids': [1, 3]" in error
    assert "= 9999 is not in [0, " in error


def test_rows_run_in_blocks(model, monkeypatch):
    texts = ["a good film", "bad", "", "a " * 90] * 3
    whole = ask(model, {"inputs": texts})["outputs"]
    steps = []
    step = model.step
    monkeypatch.setattr(model, "step", lambda signature, block: steps.append(block) or step(signature, block))
    monkeypatch.setattr("keras_bert_layers.cli.rest_model._STEP_TOKENS", 12)
    parts = ask(model, {"inputs": texts})["outputs"]
    assert [len(step["text"]) for step in steps] == [3, 1] * 3
    assert (parts["label"], parts["bytes_cut"]) == (whole["label"], whole["bytes_cut"])
    np.testing.assert_allclose(parts["probabilities"], whole["probabilities"], atol=1e-6, rtol=0)
    monkeypatch.setattr("keras_bert_layers.cli.rest_model.SECONDS", 0.0)
    assert ask(model, {"inputs": texts}, 504)["error"].endswith("and was not; send fewer rows")


def test_blocks_of_other_widths_are_joined():
    names = [np.array([[b"a"]], object), np.array([[b"b", b"c"], [b"d", b""]], object)]
    assert _joined(names).tolist() == [[b"a", b""], [b"b", b"c"], [b"d", b""]]
    scores = [np.ones((1, 1, 2), np.float32), np.zeros((1, 2, 2), np.float32)]
    assert _joined(scores).tolist() == [[[1, 1], [-1, -1]], [[0, 0], [0, 0]]]


def test_an_onnx_file(run, classifier, model, without_tensorflow, tmp_path):
    path, good = tmp_path / "films.onnx", {"inputs": ["a good film", "bad,\0 bad night", ""]}
    assert run("convert", classifier, path, "--to", "onnx") == 0
    requests = [("POST", ":predict", json.dumps(good)), ("POST", ":predict", '{"inputs": {"words": ["a"]}}')]
    several_blocks = 4
    answers, *_ = without_tensorflow("serve", path, several_blocks, *requests, ("GET", "/metadata", ""))
    found, refused, metadata = answers
    expected = ask(model, good)["outputs"]
    assert found[0] == 200
    assert found[1]["outputs"]["label"] == expected["label"]
    np.testing.assert_allclose(found[1]["outputs"]["probabilities"], expected["probabilities"], atol=1e-5, rtol=0)
    assert refused[0] == 400
    assert "takes the inputs ['text']" in refused[1]["error"]
    assert list(metadata[1]["metadata"]["signature_def"]["signature_def"]) == ["serving_default"]


def test_a_keras_file_answers_as_its_export(model, keras_file):
    of_file = TaskRestModel(keras_file, name="films")
    body = {"inputs": {"text": ["a good film", "bad", ""]}}
    found, expected = ask(of_file, body)["outputs"], ask(model, body)["outputs"]
    assert found["label"] == expected["label"]
    np.testing.assert_allclose(found["probabilities"], expected["probabilities"], atol=1e-6)  # float32, other batches
    outputs = json.loads(of_file.answer("GET", "/v1/models/films/metadata", b"").body)["metadata"]["signature_def"]
    assert {*outputs["signature_def"]["serving_default"]["outputs"]} == {*expected} - {"bytes_cut"}
    assert "must be a list that is not empty" in ask(of_file, {"inputs": {"text": []}}, 400)["error"]


def test_an_onnx_file_of_ids_reads_texts_with_the_tokenizer_beside_it(keras_file, tmp_path, error_line, run):
    pytest.importorskip("onnxruntime")
    task = keras.models.load_model(keras_file)
    save_huggingface(task, tmp_path / "films", onnx=True)
    path = tmp_path / "films" / "onnx" / "model.onnx"
    texts = ["a good film", "bad", ""]
    found = ask(OnnxRestModel(path, name="films"), {"inputs": {"text": texts}})["outputs"]
    np.testing.assert_allclose(found, task.predict(texts, verbose=0), atol=1e-5)  # float32, other products
    (tmp_path / "films" / "tokenizer.json").unlink()
    assert run("serve", path) == 2
    assert "or ids with tokenizer.json beside" in error_line()
