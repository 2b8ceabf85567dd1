import keras
import numpy as np
import pytest

from keras_bert_layers import BertTokenizer
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.tf1_checkpoint import write_tf1_checkpoint
from keras_bert_layers.checkpoints.google.directory import GoogleHubDirectory
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.loaders import read_backbone
from keras_bert_layers.checkpoints.weights.model_tensors import ModelTensors
from keras_bert_layers.checkpoints.weights.table import Layout, backbone_rows


@pytest.fixture
def backbone(checkpoint):
    return read_backbone(HuggingFaceDirectory(checkpoint, owner="load_backbone"))


@pytest.fixture
def directory(checkpoint, backbone):
    """The files of google/bert_uncased_L-4_H-256_A-4: Google's checkpoint, a pickle of it, HuggingFace's config."""
    tensors = ModelTensors(backbone, backbone_rows(backbone.config), Layout.GOOGLE, num_heads=3)
    write_tf1_checkpoint(checkpoint / "bert_model.ckpt", tensors)
    (checkpoint / "model.safetensors").unlink()
    (checkpoint / "pytorch_model.bin").write_bytes(b"a pickle that is never opened")
    return checkpoint


def opened(directory):
    return GoogleHubDirectory(directory, owner="load_backbone")


def test_the_weights_are_googles_and_the_config_is_huggingfaces(directory, backbone):
    found = read_backbone(opened(directory))
    assert found.config == backbone.config
    assert found.config.activation == "gelu_erf"
    for weight, expected in zip(found.weights, backbone.weights, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), keras.ops.convert_to_numpy(expected))


def test_the_tokenizer_is_huggingfaces(directory):
    tokenizer = BertTokenizer(**opened(directory).tokenizer_options())
    assert (tokenizer.reference, tokenizer.lowercase) == ("huggingface", True)
    assert opened(directory).max_length() == 17


def test_no_head_no_task(directory):
    assert opened(directory).trained_heads() == ()


def test_which_directories_are_such(directory):
    assert GoogleHubDirectory.describes(directory)
    (directory / "model.safetensors").touch()
    assert not GoogleHubDirectory.describes(directory)
    (directory / "model.safetensors").unlink()
    (directory / "config.json").unlink()
    assert not GoogleHubDirectory.describes(directory)


def test_half_a_checkpoint(directory):
    (directory / "bert_model.ckpt.data-00000-of-00001").unlink()
    with pytest.raises(CheckpointError, match=r"bert_model\.ckpt\.data-00000-of-00001"):
        opened(directory).open_weights()
