"""Checkpoints that cannot be read, through the functions that users call: each with its message, and no model made."""

import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_layers import BertBackbone, load_backbone, load_preprocessor, load_task, load_tokenizer
from keras_bert_layers.checkpoints import CheckpointError

WEIGHTS = "model.safetensors"


def truncated(checkpoint):
    path = checkpoint / WEIGHTS
    path.write_bytes(path.read_bytes()[:-100])


def terabytes(checkpoint):
    header = b'{"pooler.dense.bias":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]}}'
    (checkpoint / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header)


def terabytes_of_header(checkpoint):
    (checkpoint / WEIGHTS).write_bytes((2**42).to_bytes(8, "little") + b"{}")


def tensor(name, array):
    def change(checkpoint):
        save_file({**load_file(checkpoint / WEIGHTS), name: array}, checkpoint / WEIGHTS)

    return change


def no_vocabulary(checkpoint):
    (checkpoint / "vocab.txt").unlink()


def one_more_token(checkpoint):
    with (checkpoint / "vocab.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"more{index}\n" for index in range(6))


def config(**changed):
    def change(checkpoint):
        path = checkpoint / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))

    return change


@pytest.fixture
def no_model(monkeypatch):
    """Fails if a backbone is made: errors come before."""

    def refuse(*arguments, **options):
        raise AssertionError("a model was made before the check")

    monkeypatch.setattr(BertBackbone, "__init__", refuse)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (truncated, r"model\.safetensors: not a complete safetensors file: .*Download or copy the file again"),
        (terabytes, r"model\.safetensors: not a complete safetensors file: .*Download or copy the file again"),
        (
            terabytes_of_header,
            r"not a complete safetensors file: .*Received: a header of 4398046511104 bytes, a file of 10",
        ),
        (config(hidden_act="relu2"), r"config\.json: .*`hidden_act` must be one of .*Received: .*'relu2'"),
        (config(hidden_act=["gelu"]), r"config\.json: .*hidden_act"),
        (
            config(position_embedding_type="relative_key_query"),
            r"config\.json: .*`position_embedding_type` must be 'absolute'\. .*Relative positions change",
        ),
        (
            config(is_decoder=True),
            r"config\.json: .*`is_decoder` must be False\. Received: .*True\. A decoder sees only",
        ),
        (config(num_hidden_layers=10**6), r"Received: a config of 1000000 layers, and 39 tensors"),
        (config(num_hidden_layers=30), r"the model needs 448 tensors that the weights file lacks"),
        (config(vocab_size=10**9), r"vocabulary size must equal the embedding's 23 rows"),
        (config(max_position_embeddings=10**9), r"must have shape \(1000000000, 15\)"),
        (config(intermediate_size=10**9), r"must have shape \(1000000000, 15\)"),
        (config(hidden_size=3 * 10**9), r"must have shape \(23, 3000000000\)"),
        (config(vocab_size="23"), r"config\.json: .*`vocabulary_size` must be an integer. Received: .*'23'"),
        (config(num_attention_heads=4), r"config\.json: .*`num_heads` must divide `hidden_dim` \(15\)"),
    ],
)
@pytest.mark.parametrize("load", [load_backbone, load_task])
def test_files_that_are_refused_unseen(checkpoint, no_model, load, change, message):
    change(checkpoint)
    options = {} if load is load_backbone else {"task": "classifier", "num_classes": 3, "preprocessor": None}
    with pytest.raises(CheckpointError, match=message) as caught:
        load(checkpoint, **options)
    assert str(checkpoint) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (tensor("pooler.dense.bias", np.ones(15, "int8")), r"'pooler\.dense\.bias' must hold floats, .*Received: I8"),
        (tensor("pooler.dense.bias", np.ones(16, "float32")), r"must have shape \(15,\)\. Received: shape=\(16,\)\."),
        (config(vocab_size=22), r"vocabulary size must equal the embedding's 23 rows"),
    ],
)
def test_tensors_that_are_refused(checkpoint, change, message):
    change(checkpoint)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_backbone(checkpoint)
    assert str(checkpoint) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (no_vocabulary, r"must hold a vocab\.txt or a tokenizer\.json\. Found: config\.json, model\.safetensors\."),
        (one_more_token, r"must not hold more tokens than config\.json's vocab_size of 23\. Received: 24 tokens"),
    ],
)
@pytest.mark.parametrize("load", [load_tokenizer, load_preprocessor])
def test_vocabularies_that_are_refused(checkpoint, load, change, message):
    change(checkpoint)
    with pytest.raises(CheckpointError, match=message) as caught:
        load(checkpoint)
    assert str(checkpoint) in str(caught.value)


@pytest.mark.parametrize("load", [load_backbone, load_tokenizer, load_preprocessor, load_task])
def test_no_permission_to_read(checkpoint, monkeypatch, load):
    """As for users other than root, who may read everything."""
    granted = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != checkpoint and granted(path, mode))
    message = rf"`{load.__name__}`: `source` must be a directory that may be read"
    with pytest.raises(CheckpointError, match=message) as caught:
        load(checkpoint)
    assert str(checkpoint) in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", WEIGHTS])
def test_a_folder_in_the_place_of_a_file(checkpoint, name):
    (checkpoint / name).unlink()
    (checkpoint / name).mkdir()
    with pytest.raises(CheckpointError, match=rf"must hold .*Found: config\.json, {WEIGHTS}, vocab\.txt"):
        load_backbone(checkpoint)


@pytest.mark.parametrize("place", [".", "1"])
def test_a_saved_model(tmp_path, place):
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / "saved_model.pb").touch()
    with pytest.raises(CheckpointError, match=r"A SavedModel is a program and not a checkpoint\. Load the `\.keras`"):
        load_task(tmp_path)
