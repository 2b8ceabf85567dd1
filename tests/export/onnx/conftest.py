import importlib.util
import json
import pickle
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl

RUNTIME = Path(__file__).with_name("runtime.py")
# Sums in another order, by another library, after two blocks.
TOLERANCE = 1e-5
TEXTS = ["a good film", "unhappy night, BAD film!", "", "film [MASK] " * 9, "Ünhappy\tnight"]


@pytest.fixture(scope="session")
def ask():
    """Runs an ONNX file as a user does, in a process without TensorFlow: texts, or inputs by name, to the answers."""
    for package in ("onnxruntime", "onnxruntime_extensions"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs the package {package}, which the extra `onnx` installs")
    with subprocess.Popen([sys.executable, RUNTIME], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as runtime:

        def ask(model, texts):
            content = model if isinstance(model, bytes) else Path(model).read_bytes()
            inputs = texts if isinstance(texts, dict) else {"text": texts}
            pickle.dump((content, {name: np.array(each, object) for name, each in inputs.items()}), runtime.stdin)
            runtime.stdin.flush()
            answer = pickle.load(runtime.stdout)
            if isinstance(answer, RuntimeError):
                raise answer
            return answer

        yield ask
        runtime.stdin.close()


@pytest.fixture(scope="session")
def known_rules():
    return {}


@pytest.fixture
def rules_once(known_rules, monkeypatch):
    """Within the test, equal tokenizers share their rules, which take a look at every character to make."""
    make = kbl.BertTokenizer.rules

    def rules(tokenizer):
        key = json.dumps(tokenizer.get_config())
        if key not in known_rules:
            known_rules[key] = make(tokenizer)
        return known_rules[key]

    monkeypatch.setattr(kbl.BertTokenizer, "rules", rules)


@pytest.fixture
def check_onnx(ask, tmp_path, rules_once, traces_nothing):
    """Exports a task, and compares its answers with the task's own: for all texts together, and for each one alone.

    The task answers eagerly, and most often once: its rows do not depend on company.
    """

    def served(task, texts):
        return {name: np.asarray(value) for name, value in task.serve(texts).items()}

    def same(answers, expected):
        assert [*answers] == [*expected, "num_tokens", "bytes_cut"]
        for name, wanted in expected.items():
            if wanted.dtype.kind in "SO":
                assert answers[name].tolist() == np.vectorize(bytes.decode, otypes=[object])(wanted).tolist()
            else:
                np.testing.assert_allclose(answers[name], wanted, atol=TOLERANCE, rtol=0)

    def check(task):
        path = task.export(tmp_path / "model.onnx", format="onnx")
        expected = served(task, TEXTS)
        same(ask(path, TEXTS), expected)
        # Names of several labels are as many columns as the longest row of the batch has.
        is_ragged = any(value.ndim == 2 and value.dtype.kind in "SO" for value in expected.values())
        for row, text in enumerate(TEXTS):
            alone = {name: value[row : row + 1] for name, value in expected.items()}
            same(ask(path, [text]), served(task, [text]) if is_ragged else alone)

    return check


@pytest.fixture(scope="session")
def new_backbone(vocabulary):
    """Makes small backbones, with weights so large that answers differ."""

    def make(**changes):
        keras.utils.set_random_seed(3)
        sizes = {"hidden_dim": 15, "num_layers": 2, "num_heads": 3, "intermediate_dim": 21, "max_sequence_length": 13}
        config = {"vocabulary_size": len(vocabulary), "initializer_range": 0.3, **sizes, **changes}
        made = kbl.BertBackbone(kbl.BertConfig(**config))
        for weight in made.trainable_weights:
            if "kernel" in weight.path:
                weight.assign(weight * 2)
        return made

    return make
