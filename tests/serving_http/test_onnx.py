"""An ONNX file in the server, beside Keras; the server's process loads no TensorFlow."""

import importlib.util
import json
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest

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
    with urlopen(request, timeout=30) as response:
        return json.load(response)


@pytest.fixture
def exported(tmp_path, small_classifier):
    """A folder of models that holds `sentiment/1/model.onnx`, and what it was written from."""
    task = small_classifier(["bad", "good"])
    folder = tmp_path / "models" / "sentiment" / "1"
    folder.mkdir(parents=True)
    task.export(folder / "model.onnx", format="onnx")
    return tmp_path / "models", task


def test_an_onnx_file_is_served_as_a_saved_model_is(exported, start_server):
    models, task = exported
    server = start_server(models)
    found, expected = server.client().predict({"text": TEXTS}), task.serve(TEXTS)
    assert found["label"] == [label.decode() for label in expected["label"].numpy()]
    np.testing.assert_allclose(found["probabilities"], expected["probabilities"], atol=TOLERANCE, rtol=0)
    assert found["num_tokens"] == np.asarray(task.preprocessor(TEXTS)["padding_mask"]).sum(axis=1).tolist()
    predictions = post(server, "/predict", {"inputs": [[text] for text in TEXTS[:2]]})
    assert [row[0]["label"] for row in predictions] == found["label"][:2]
    with urlopen(f"{server.url}/v1/models/sentiment/metadata", timeout=30) as response:
        signatures = json.load(response)["metadata"]["signature_def"]["signature_def"]
    assert signatures["serving_default"]["inputs"]["text"]["dtype"] == "DT_STRING"
    maps = [Path("/proc", str(child.pid), "maps") for child in server.processes()]
    assert not any("libtensorflow" in path.read_text() for path in maps if path.is_file())


def test_many_texts_at_once_get_the_answers_they_get_alone(exported, start_server):
    client = start_server(exported[0]).client()
    texts = TEXTS[:2] + ["good bad film " * length for length in range(1, 20)]
    together = client.predict({"text": texts})
    alone = [client.predict({"text": [text]}) for text in texts]
    assert together["label"] == [answer["label"][0] for answer in alone]
    assert together["num_tokens"] == [answer["num_tokens"][0] for answer in alone]
    found, expected = together["probabilities"], [answer["probabilities"][0] for answer in alone]
    np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=0)


def test_what_an_onnx_file_does_not_have_is_refused(exported, start_server):
    client = start_server(exported[0]).client(attempts=1)
    with pytest.raises(Exception, match="must be 'serving_default' for an ONNX file"):
        client.predict({"text": ["a"]}, "tokenize")
    with pytest.raises(Exception, match="takes the inputs"):
        client.predict({"texts": ["a"]})
    with pytest.raises(Exception, match="must be a string"):
        client.predict({"text": [1]})
