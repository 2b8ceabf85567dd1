"""Fixtures of the checkpoint tests: small random checkpoints of every layout."""

import importlib.util
import json
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
def crafted(huggingface):
    """The module `crafted_directories.py`: directories that one program reads differently, or none."""
    return _module("crafted_directories")


@pytest.fixture(scope="session")
def crafted_apart(crafted):
    """The module `crafted_apart.py`: more of these directories."""
    return _module("crafted_apart")


@pytest.fixture(scope="session")
def google():
    """The module `google_checkpoint.py`: writes small random checkpoints as Google's code does."""
    return _module("google_checkpoint")


@pytest.fixture(scope="session")
def kerashub():
    """The module `kerashub_models.py`: small random models of KerasHub's own, and what they write."""
    return _module("kerashub_models")


@pytest.fixture(scope="session")
def jina():
    """The module `jina_checkpoint.py`: writes small random checkpoints with adapters."""
    return _module("jina_checkpoint")


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


@pytest.fixture(scope="session")
def pylate():
    """A function that writes a multi-vector encoder as PyLate does, with these settings."""

    def write(our_models, directory, **settings):
        from keras_bert_layers import BertBackbone, BertMultiVectorEncoder, save_huggingface

        task = BertMultiVectorEncoder(BertBackbone(our_models.CONFIG), 7, preprocessor=our_models.preprocessor())
        save_huggingface(our_models.randomised(task), directory)
        for folder in ("2_MultiVectorMask", "3_Normalize"):
            (directory / folder / "config.json").unlink()
            (directory / folder).rmdir()
        kinds = {"": "sentence_transformers.models.Transformer", "1_Dense": "pylate.models.Dense.Dense"}
        chain = [{"idx": 0, "name": kind[-5:], "path": path, "type": kind} for path, kind in kinds.items()]
        dense = {"in_features": 15, "out_features": 7, "bias": False}
        dense["activation_function"] = "torch.nn.modules.linear.Identity"
        written = {"modules": chain, "1_Dense/config": dense, "sentence_bert_config": {"max_seq_length": 11}}
        written["config_sentence_transformers"] = {"model_type": "ColBERT", "similarity_fn_name": "MaxSim", **settings}
        for name, values in written.items():
            (directory / f"{name}.json").write_text(json.dumps(values), "utf-8")
        return directory

    return write
