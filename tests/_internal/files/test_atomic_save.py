"""A saved model replaces the file of before when it is complete."""

import os
import re
import signal
from collections import Counter

import h5py
import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig
from keras_bert_layers._internal.files.atomic_save import atomic_save

CONFIG = {"vocabulary_size": 999, "hidden_dim": 64, "num_layers": 1, "num_heads": 2, "intermediate_dim": 64}
FILES = ["model.keras", "model.weights.h5"]


def make(scale=1.0):
    task = BertClassifier(BertBackbone(BertConfig(**CONFIG)), 2)
    task.set_weights([np.full(weight.shape, scale, "float32") for weight in task.get_weights()])
    return task


def write(task, path):
    (task.save if path.suffix == ".keras" else task.save_weights)(path)


def read(path):
    """The weights of a file, all of which have one value."""
    task = keras.models.load_model(path) if path.suffix == ".keras" else make(0.0)
    if path.suffix != ".keras":
        task.load_weights(path)
    return {float(value) for weight in task.get_weights() for value in (weight.min(), weight.max())}


@pytest.mark.parametrize("name", FILES)
def test_the_second_replaces_the_first(name, tmp_path):
    for scale in (1.0, 2.0):
        write(make(scale), tmp_path / name)
        assert read(tmp_path / name) == {scale}
    assert os.listdir(tmp_path) == [name]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on the size of files")
@pytest.mark.parametrize("name", FILES)
def test_full_disk(name, tmp_path):
    import resource

    write(make(1.0), tmp_path / name)
    task = make(2.0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match="What was there is unchanged"):
            write(task, tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert read(tmp_path / name) == {1.0}
    assert os.listdir(tmp_path) == [name]


def test_damage_is_found(tmp_path):
    for name in FILES:
        with pytest.raises(OSError, match="What was there is unchanged"):
            atomic_save(make(), lambda path: path.write_bytes(b"half"), tmp_path / name, overwrite=True)
    assert os.listdir(tmp_path) == []


def test_every_value_is_read(tmp_path, monkeypatch):
    shapes = []
    monkeypatch.setattr(h5py.Dataset, "read_direct", lambda self, _: shapes.append(self.shape))
    task = make()
    task.save_weights(tmp_path / "model.weights.h5")
    assert Counter(tuple(weight.shape) for weight in task.weights) <= Counter(shapes), "and the optimizer's"


def test_a_file_that_may_not_be_overwritten_is_for_keras_to_ask_about(tmp_path, monkeypatch):
    path = tmp_path / "model.keras"
    make(1.0).save(path)
    monkeypatch.setattr("builtins.input", lambda *_: "n")
    make(2.0).save(path, overwrite=False)
    assert read(path) == {1.0}


@pytest.mark.parametrize(("name", "method"), [("model.zip", "save"), ("model.h5", "save_weights")])
def test_errors_of_keras_name_the_users_path(name, method, tmp_path):
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / name))):
        getattr(make(), method)(tmp_path / name)


def test_model_checkpoint(tmp_path):
    task = make()
    ids = {name: np.ones((4, 3), "int32") for name in ("token_ids", "segment_ids", "padding_mask")}
    path = tmp_path / "best.keras"
    task.compile(run_eagerly=True)
    task.fit(ids, np.ones(4), epochs=2, verbose=0, callbacks=[keras.callbacks.ModelCheckpoint(path)])
    assert os.listdir(tmp_path) == ["best.keras"]
    keras.models.load_model(path)
