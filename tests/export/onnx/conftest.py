import dataclasses
import json
import pickle
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert_layers as kbl

RUNTIME = Path(__file__).with_name("runtime.py")
# Sums in another order, by another library, after two blocks.
TOLERANCE = 1e-5
TEXTS = ["a good film", "unhappy night, BAD film!", "", "film [MASK] " * 9, "Ünhappy\tnight"]


@pytest.fixture(scope="session")
def ask():
    """Runs an ONNX file as a user does, in a process without TensorFlow: texts to the answers by name."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxruntime_extensions")
    with subprocess.Popen([sys.executable, RUNTIME], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as runtime:

        def ask(model, texts):
            content = model if isinstance(model, bytes) else Path(model).read_bytes()
            pickle.dump((content, np.array(texts, object)), runtime.stdin)
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
def check_onnx(ask, tmp_path, rules_once):
    """Exports a task, and compares its answers for all texts, together and one at a time.

    The task answers eagerly: for a few texts, far less work than a trace.
    """

    def same(answers, expected):
        assert [*answers] == [*(name for name in expected if name != "bytes_cut"), "num_tokens"]
        for name in set(answers) - {"num_tokens"}:
            found = answers[name]
            wanted = np.asarray(expected[name])
            if wanted.dtype.kind in "SO":
                assert found.tolist() == np.vectorize(bytes.decode, otypes=[object])(wanted).tolist()
            else:
                np.testing.assert_allclose(found, wanted, atol=TOLERANCE, rtol=0)

    def check(task):
        path = task.export(tmp_path / "model.onnx", format="onnx")
        tf.config.run_functions_eagerly(True)
        try:
            expected = task.serve(TEXTS)
        finally:
            tf.config.run_functions_eagerly(False)
        same(ask(path, TEXTS), expected)
        for row, text in enumerate(TEXTS):  # the task's answer depends on no other text
            same(ask(path, [text]), {name: values[row : row + 1] for name, values in expected.items()})

    return check


@pytest.fixture
def new_backbone(backbone):
    """Makes backbones of changed sizes, with weights so large that answers differ."""

    def make(**changes):
        keras.utils.set_random_seed(3)
        made = kbl.BertBackbone(dataclasses.replace(backbone.config, **changes))
        for weight in made.trainable_weights:
            if "kernel" in weight.path:
                weight.assign(weight * 2)
        return made

    return make
