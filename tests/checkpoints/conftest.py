"""Fixtures of the checkpoint tests: small random checkpoints of every layout."""

import importlib.util
import sys
from pathlib import Path

import pytest

from keras_bert_layers.checkpoints.files.tensor_file import TensorInfo

FOLDER = Path(__file__).parent


@pytest.fixture(autouse=True, scope="module")
def computes_eagerly(eagerly):
    """Models run without a graph: each is asked for a few rows, far less work than its trace.

    So does `predict` of ids, which Keras would read by a tf.data pipeline, where TensorFlow warns.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        yield
        return
    with pytest.MonkeyPatch.context() as patch, eagerly():
        patch.setattr(keras.Model, "predict", lambda model, x, **_: model.predict_on_batch(x))
        yield


def _module(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def huggingface():
    """The module `huggingface_checkpoint.py`: writes small random checkpoints."""
    return _module("huggingface_checkpoint")


@pytest.fixture(scope="session")
def google():
    """The module `google_checkpoint.py`: writes small random checkpoints as Google's code does."""
    return _module("google_checkpoint")


@pytest.fixture(scope="session")
def kerashub():
    """The module `kerashub_models.py`: small random models of KerasHub's own, and what they write."""
    return _module("kerashub_models")


@pytest.fixture(scope="session")
def our_models():
    """The module `our_models.py`: a small random model of every kind, for the writers."""
    return _module("our_models")


@pytest.fixture
def checkpoint(huggingface, tmp_path):
    """A small random checkpoint of a bare encoder; tests change its files."""
    return huggingface.write(tmp_path / "checkpoint")


class Arrays:
    """Arrays in memory as a `TensorFile`."""

    def __init__(self, arrays):
        self.arrays = arrays
        self.infos = {name: TensorInfo("F32", array.shape) for name, array in arrays.items()}

    def read(self, name):
        return self.arrays[name]


@pytest.fixture(scope="session")
def in_memory():
    """A function that makes a `TensorFile` of arrays."""
    return Arrays


@pytest.fixture
def files_stay(tmp_path, monkeypatch):
    """Fails if a test leaves a file in its folder, which is the current one, or beside it."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    yield
    assert list((tmp_path / "cwd").iterdir()) == []
    assert not [path for path in (tmp_path.parent / "escaped", tmp_path / "escaped", Path("/escaped")) if path.exists()]
