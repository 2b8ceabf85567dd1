"""Atomic saves: a saved model replaces the old file when the new one is complete."""

import json
import os
import re
import signal
from collections import Counter

import h5py
import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig
from keras_bert_layers._internal.files.atomic_save import atomic_save, save_shards
from keras_bert_layers.tasks import StaticBackbone

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


@pytest.mark.parametrize(
    "make_model", [make, lambda: make().backbone, lambda: StaticBackbone(9, 4)], ids=["task", "backbone", "static"]
)
@pytest.mark.parametrize("name", ["model.h5", "model.hdf5"])
def test_a_model_in_hdf5_is_refused_as_it_could_not_be_loaded(make_model, name, tmp_path):
    with pytest.raises(ValueError, match=r"`filepath` must end in \.keras.*`save_weights\("):
        make_model().save(tmp_path / name)
    assert not list(tmp_path.iterdir())


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


# In GB: two shards of the model, and one.
LARGEST, ONE = 1e-6, 1.0


def make_sharded(scale=1.0):
    model = keras.Sequential([keras.Input((13,)), keras.layers.Dense(17), keras.layers.Dense(11)])
    model.set_weights([np.full(weight.shape, scale, "float32") for weight in model.get_weights()])
    return model


def read_sharded(path):
    """The weights of a file, all of which have one value."""
    model = make_sharded(0.0)
    model.load_weights(path)
    return {float(value) for weight in model.get_weights() for value in (weight.min(), weight.max())}


def save(path, scale=1.0, size=LARGEST):
    model = make_sharded(scale)
    atomic_save(model, model.save_weights, path, overwrite=True, max_shard_size=size)


def numbers(folder):
    return sorted(int(name[2:7]) for name in os.listdir(folder) if name != "x.weights.json")


def test_a_first_save_is_named_as_keras_does(tmp_path):
    (tmp_path / "keras").mkdir()
    (tmp_path / "ours").mkdir()
    make_sharded().save_weights(tmp_path / "keras" / "x.weights.json", max_shard_size=LARGEST)
    save(tmp_path / "ours" / "x.weights.json")
    assert sorted(os.listdir(tmp_path / "ours")) == sorted(os.listdir(tmp_path / "keras"))
    assert numbers(tmp_path / "ours") == [0, 1]


def test_new_shards_get_free_numbers_and_the_old_ones_are_removed(tmp_path):
    path = tmp_path / "x.weights.json"
    for scale, size, expected in [
        (1.0, LARGEST, [0, 1]),
        (2.0, LARGEST, [0, 2, 3]),
        (3.0, ONE, [0, 1]),
        (4.0, LARGEST, [0, 2, 3]),
        (5.0, LARGEST, [0, 4, 5]),
        (6.0, LARGEST, [0, 1, 2]),
    ]:
        save(path, scale, size)
        assert read_sharded(path) == {scale}
        assert numbers(tmp_path) == expected
    with h5py.File(tmp_path / "x_00000.weights.h5") as file:
        assert not len(file), "its weights are gone"


def test_replaces_what_keras_wrote(tmp_path):
    path = tmp_path / "x.weights.json"
    make_sharded(1.0).save_weights(path, max_shard_size=LARGEST)
    save(path, 2.0)
    assert read_sharded(path) == {2.0}
    assert numbers(tmp_path) == [0, 2, 3]


def test_other_files_stay(tmp_path):
    """Another file, such as that of an epoch, may have the name of a shard; and an index may name anything."""
    epoch, thesis = tmp_path / "x_00001.weights.h5", tmp_path / "thesis.tex"
    make_sharded(7.0).save_weights(epoch)
    thesis.write_text("chapter")
    path = tmp_path / "x.weights.json"
    path.write_text(json.dumps({"weight_map": {"a": "thesis.tex", "b": "../x_00001.weights.h5"}}))
    for scale in (1.0, 2.0):
        save(path, scale)
        assert read_sharded(path) == {scale}
    assert read_sharded(epoch) == {7.0}
    assert thesis.read_text() == "chapter"


@pytest.mark.parametrize("content", ["", "{}", '"x"', '{"weight_map": []}', '{"weight_map": {"a": 3}}'])
def test_an_invalid_index_is_replaced(content, tmp_path):
    (tmp_path / "x.weights.json").write_text(content)
    save(tmp_path / "x.weights.json", 2.0)
    assert read_sharded(tmp_path / "x.weights.json") == {2.0}


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "x.weights.json"
    save(path, 1.0)
    before = sorted(os.listdir(tmp_path))
    replace = os.replace

    def refuse(source, target):
        if str(target).endswith(".json"):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space left on device. What was there is unchanged."):
        save(path, 2.0)
    assert sorted(os.listdir(tmp_path)) == before
    assert read_sharded(path) == {1.0}


def test_a_name_in_h5_is_changed_as_in_keras(tmp_path):
    with pytest.warns(UserWarning, match="renamed to"):
        save(tmp_path / "x.weights.h5")
    assert read_sharded(tmp_path / "x.weights.json") == {1.0}


@pytest.mark.parametrize(
    ("name", "size", "message"), [("x.json", 1, "must end in"), ("x.weights.json", 1e-9, "exceeds")]
)
def test_errors_of_keras(name, size, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        save(tmp_path / name, size=size)
    assert os.listdir(tmp_path) == []


def test_several_files_for_one_weight(tmp_path):
    """Keras gives a list where the weights of one layer are in two shards."""

    def write(index):
        shards = [index.with_name(f"x_0000{number}.weights.h5") for number in (0, 1)]
        for shard in shards:
            h5py.File(shard, "w").close()
        index.write_text(json.dumps({"weight_map": {"a": [shard.name for shard in shards], "b": shards[1].name}}))
        return shards

    for expected in ([0, 1], [2, 3]):
        save_shards("Task", write, tmp_path / "x.weights.json")
        names = [f"x_{number:05}.weights.h5" for number in expected]
        assert json.loads((tmp_path / "x.weights.json").read_text())["weight_map"] == {"a": names, "b": names[1:]}
