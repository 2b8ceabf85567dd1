import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface import weight_files
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory


def opened(source):
    return HuggingFaceDirectory(source, owner="load_backbone")


def test_no_config(checkpoint):
    (checkpoint / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"must hold config\.json. Found: model\.safetensors, vocab\.txt"):
        _ = opened(checkpoint).config


def test_invalid_config(checkpoint):
    (checkpoint / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json: must be valid JSON"):
        _ = opened(checkpoint).config


def test_config_of_another_model(checkpoint, huggingface):
    huggingface.write_json(checkpoint / "config.json", {**huggingface.CONFIG, "model_type": "albert"})
    with pytest.raises(CheckpointError, match=r"config\.json: .*`model_type` must be one of \['bert', .*'albert'"):
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

    monkeypatch.setattr(weight_files, "SafetensorsFile", refuse)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: cannot be read: Permission denied"):
        opened(checkpoint).open_weights()
