"""Small checkpoints, and the command line in this process."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from keras_bert_layers import cli


@pytest.fixture(scope="session")
def run():
    """A function that runs a command and returns its exit code."""
    return lambda *words: cli.main([str(word) for word in words])


@pytest.fixture
def error_line(capsys):
    """A function that returns the last line on stderr, after as many lines before it; by default none."""

    def error_line(before=0):
        captured = capsys.readouterr()
        assert captured.err.count("\n") == before + 1, captured.err
        return captured.err.splitlines(keepends=True)[-1]

    return error_line


@pytest.fixture
def answers(capsys):
    """A function that returns the JSON lines on stdout."""
    return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture(scope="session")
def huggingface():
    """The module `checkpoints/huggingface_checkpoint.py`, which writes small random checkpoints."""
    path = Path(__file__).parents[1] / "checkpoints" / "huggingface_checkpoint.py"
    spec = importlib.util.spec_from_file_location("huggingface_checkpoint", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.CONFIG["num_hidden_layers"] = 1  # the time of these tests is the tracing of graphs
    return module


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="session")
def classifier(huggingface, folder):
    """A small checkpoint with a trained head."""
    config = {**huggingface.CONFIG, **huggingface.CLASSIFIER}
    return huggingface.write(
        folder / "classifier", config=config, tensors=huggingface.random_tensors(prefix="bert.", head=3)
    )


@pytest.fixture(scope="session")
def encoder(huggingface, folder):
    """A small checkpoint without a head."""
    return huggingface.write(folder / "encoder")


@pytest.fixture(scope="session")
def keras_file(run, classifier, folder):
    """The classifier as a `.keras` file."""
    assert run("convert", classifier, folder / "classifier.keras", "--to", "keras") == 0
    return folder / "classifier.keras"


@pytest.fixture(scope="session")
def saved_model(run, classifier, folder):
    """The classifier as a SavedModel."""
    pytest.importorskip("tensorflow_text")
    assert run("convert", classifier, folder / "exported", "--to", "saved-model") == 0
    return folder / "exported"


# ONNX Runtime reads no text where TensorFlow was loaded first.
WITHOUT_TENSORFLOW = """
import contextlib, io, json, sys
from pathlib import Path
from keras_bert_layers import cli
from keras_bert_layers.cli import rest_model

def served(path, step_tokens, *requests):
    rest_model._STEP_TOKENS = step_tokens
    model = rest_model.OnnxRestModel(Path(path), name="films")
    model.warm_up()  # before the first request, as `serve` does
    answers = [model.answer(method, "/v1/models/films" + end, body.encode()) for method, end, body in requests]
    return [[answer.status, json.loads(answer.body)] for answer in answers]

for line in sys.stdin:
    kind, *words = json.loads(line)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        result = cli.main(words) if kind == "run" else served(*words)
    assert "tensorflow" not in sys.modules
    print(json.dumps([result, out.getvalue(), err.getvalue()]), flush=True)
"""


@pytest.fixture(scope="session")
def without_tensorflow():
    """A function that runs a command, `("run", *words)`, or asks the model of an ONNX file, in one other process.

    The second is `("serve", path, step_tokens, *requests)`, each request a method, the end of its path and a body. The
    function returns the exit code or the answers, and what was written to stdout and stderr.
    """
    for package in ("onnx", "onnxruntime", "onnxruntime_extensions"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs the package {package}, which the extra `onnx` installs")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    with subprocess.Popen([sys.executable, "-c", WITHOUT_TENSORFLOW], **pipes) as process:

        def ask(*words):
            process.stdin.write(json.dumps(words, default=str) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


@pytest.fixture(scope="session")
def opened():
    """Loaded models, by the arguments of the function that loaded them."""
    return {}


@pytest.fixture
def loaded_once(opened, monkeypatch):
    """Loads each model once for all tests that use this."""
    from keras_bert_layers.cli.commands import compare, predict

    def remembering(module, name):
        load = getattr(module, name)

        def remember(source, *words, **options):
            key = name, str(source), words
            if key not in opened:
                opened[key] = load(source, *words, **options)
            return opened[key]

        monkeypatch.setattr(module, name, remember)

    remembering(predict, "open_answerer")
    remembering(compare, "load_model")
