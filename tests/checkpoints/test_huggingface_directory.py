import os
from pathlib import Path

import pytest

from keras_bert_layers.checkpoints import CheckpointError, huggingface_directory
from keras_bert_layers.checkpoints.huggingface_directory import HuggingFaceDirectory


def opened(source):
    return HuggingFaceDirectory(source, owner="load_backbone")


@pytest.mark.parametrize("kind", [str, Path, os.fspath], ids=["str", "Path", "fspath"])
def test_takes_any_path(checkpoint, kind):
    assert opened(kind(checkpoint)).config.hidden_dim == 15


@pytest.mark.parametrize("source", [None, 3, b"bytes", ["x"]])
def test_not_a_path(source):
    with pytest.raises(TypeError, match=r"`load_backbone`: `source` must be a path. Received: source="):
        opened(source)


@pytest.mark.parametrize("source", ["bert-base-uncased", "hf://google-bert/bert-base-uncased"])
def test_no_such_directory(source):
    with pytest.raises(CheckpointError, match=f"`source` must be an existing directory. Received: source='{source}'"):
        opened(source)


def test_a_file_is_no_directory(checkpoint):
    with pytest.raises(CheckpointError, match=r"must be an existing directory"):
        opened(checkpoint / "config.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every directory")
def test_no_right_to_read(checkpoint):
    checkpoint.chmod(0)
    try:
        with pytest.raises(CheckpointError, match=r"must be a directory that may be read"):
            opened(checkpoint)
    finally:
        checkpoint.chmod(0o700)


def test_no_config(checkpoint):
    (checkpoint / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"must hold a config\.json. Found: model\.safetensors, vocab\.txt"):
        _ = opened(checkpoint).config


def test_invalid_config(checkpoint):
    (checkpoint / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json: must be valid JSON"):
        _ = opened(checkpoint).config


def test_config_of_another_model(checkpoint, huggingface):
    huggingface.write_json(checkpoint / "config.json", {**huggingface.CONFIG, "model_type": "roberta"})
    with pytest.raises(CheckpointError, match=r"config\.json: .*`model_type` must be 'bert'. Received: .*'roberta'"):
        _ = opened(checkpoint).config


def test_no_weights(checkpoint):
    (checkpoint / "model.safetensors").rename(checkpoint / "model.onnx")
    with pytest.raises(
        CheckpointError,
        match=r"must hold weights, one of model\.safetensors.*Found: config\.json, model\.onnx, vocab\.txt",
    ):
        opened(checkpoint).open_weights()


def test_safetensors_go_before_a_pickle(checkpoint):
    (checkpoint / "pytorch_model.bin").write_bytes(b"not a pickle")
    assert len(opened(checkpoint).open_weights().infos) == 39


def test_weights_that_may_not_be_opened(checkpoint, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setitem(huggingface_directory._WEIGHTS, "model.safetensors", refuse)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: cannot be read: Permission denied"):
        opened(checkpoint).open_weights()
