import os
from pathlib import Path

import numpy as np
import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint


def load(source):
    return open_checkpoint(source, owner="load_backbone")


@pytest.mark.parametrize("kind", [str, Path, os.fspath], ids=["str", "Path", "fspath"])
def test_takes_any_path(checkpoint, kind):
    assert load(kind(checkpoint)).config.hidden_dim == 15


@pytest.mark.parametrize("source", [None, 3, b"bytes", ["x"]])
def test_not_a_path(source):
    with pytest.raises(TypeError, match=r"`load_backbone`: `source` must be a path. Received: source="):
        load(source)


@pytest.mark.parametrize("source", ["bert-base-uncased", "no/such/directory", Path("nowhere")])
def test_no_such_directory(source):
    with pytest.raises(CheckpointError, match=f"`source` must be an existing directory. Received: source='{source}'"):
        load(source)


@pytest.mark.parametrize("name", ["", ".index", ".data-00000-of-00001"])
def test_a_tensorflow_checkpoint_by_its_name(google, tmp_path, name):
    """One of two, as its files or their prefix name it."""
    directory, arrays = google.write(tmp_path / "google")
    google.write(directory, arrays={key: array + 1 for key, array in arrays.items()}, prefix="model.ckpt-9")
    for prefix, expected in (("bert_model.ckpt", 0), ("model.ckpt-9", 1)):
        found = load(str(directory / prefix) + name)
        read = found.open_weights().read("bert/pooler/dense/bias")
        np.testing.assert_array_equal(read, arrays["bert/pooler/dense/bias"] + expected)
        assert type(found).__name__ == "GoogleDirectory"
    (directory / "config.json").write_text("{}")
    assert type(load(directory / "bert_model.ckpt")).__name__ == "GoogleHubDirectory"


def test_a_file_of_weights(checkpoint):
    found = load(checkpoint / "model.safetensors")
    assert (found.root, found.weights_file) == (checkpoint, "model.safetensors")
    with pytest.raises(CheckpointError, match=r"must be an existing directory"):
        load(checkpoint / "absent.safetensors")


def test_the_file_is_the_one_that_was_named(checkpoint, huggingface):
    """A `modules.json` that names another folder, and a file that KerasHub does not read."""
    huggingface.write(checkpoint / "0_BERT")
    huggingface.write_json(
        checkpoint / "modules.json",
        [{"idx": 0, "name": "0", "path": "0_BERT", "type": "sentence_transformers.models.Transformer"}],
    )
    assert load(checkpoint).folder == checkpoint / "0_BERT"
    assert load(checkpoint / "model.safetensors").folder == checkpoint
    (checkpoint / "other.weights.h5").touch()
    with pytest.raises(CheckpointError, match=r"must be an existing directory"):
        load(checkpoint / "other.weights.h5")


def test_the_working_directory(checkpoint, monkeypatch):
    monkeypatch.chdir(checkpoint)
    assert load(".").config.hidden_dim == 15
    assert load("model.safetensors").config.hidden_dim == 15


def test_a_file_is_not_a_directory(checkpoint):
    with pytest.raises(CheckpointError, match=r"must be an existing directory"):
        load(checkpoint / "config.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every directory")
def test_no_permission_to_read(checkpoint):
    checkpoint.chmod(0)
    try:
        with pytest.raises(CheckpointError, match=r"must be a directory that may be read"):
            load(checkpoint)
    finally:
        checkpoint.chmod(0o700)
