import os
from pathlib import Path

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


def test_a_file_is_no_directory(checkpoint):
    with pytest.raises(CheckpointError, match=r"must be an existing directory"):
        load(checkpoint / "config.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every directory")
def test_no_right_to_read(checkpoint):
    checkpoint.chmod(0)
    try:
        with pytest.raises(CheckpointError, match=r"must be a directory that may be read"):
            load(checkpoint)
    finally:
        checkpoint.chmod(0o700)
