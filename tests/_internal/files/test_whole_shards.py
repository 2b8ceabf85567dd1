"""Weights in shards: the index always names complete shards of one model."""

import json
import os

import h5py
import keras
import numpy as np
import pytest

from keras_bert_layers._internal.files.atomic_save import atomic_save, save_shards

# In GB: two shards of the model, and one.
LARGEST, ONE = 1e-6, 1.0


def make(scale=1.0):
    model = keras.Sequential([keras.Input((13,)), keras.layers.Dense(17), keras.layers.Dense(11)])
    model.set_weights([np.full(weight.shape, scale, "float32") for weight in model.get_weights()])
    return model


def read(path):
    """The weights of a file, all of which have one value."""
    model = make(0.0)
    model.load_weights(path)
    return {float(value) for weight in model.get_weights() for value in (weight.min(), weight.max())}


def save(path, scale=1.0, size=LARGEST):
    model = make(scale)
    atomic_save(model, model.save_weights, path, overwrite=True, max_shard_size=size)


def numbers(folder):
    return sorted(int(name[2:7]) for name in os.listdir(folder) if name != "x.weights.json")


def test_a_first_save_is_named_as_keras_does(tmp_path):
    (tmp_path / "keras").mkdir()
    (tmp_path / "ours").mkdir()
    make().save_weights(tmp_path / "keras" / "x.weights.json", max_shard_size=LARGEST)
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
        assert read(path) == {scale}
        assert numbers(tmp_path) == expected
    with h5py.File(tmp_path / "x_00000.weights.h5") as file:
        assert not len(file), "its weights are gone"


def test_replaces_what_keras_wrote(tmp_path):
    path = tmp_path / "x.weights.json"
    make(1.0).save_weights(path, max_shard_size=LARGEST)
    save(path, 2.0)
    assert read(path) == {2.0}
    assert numbers(tmp_path) == [0, 2, 3]


def test_files_of_others_stay(tmp_path):
    """A file of an epoch, say, has the name of a shard; and an index may name anything."""
    epoch, thesis = tmp_path / "x_00001.weights.h5", tmp_path / "thesis.tex"
    make(7.0).save_weights(epoch)
    thesis.write_text("chapter")
    path = tmp_path / "x.weights.json"
    path.write_text(json.dumps({"weight_map": {"a": "thesis.tex", "b": "../x_00001.weights.h5"}}))
    for scale in (1.0, 2.0):
        save(path, scale)
        assert read(path) == {scale}
    assert read(epoch) == {7.0}
    assert thesis.read_text() == "chapter"


@pytest.mark.parametrize("content", ["", "{}", '"x"', '{"weight_map": []}', '{"weight_map": {"a": 3}}'])
def test_an_index_that_is_none_is_replaced(content, tmp_path):
    (tmp_path / "x.weights.json").write_text(content)
    save(tmp_path / "x.weights.json", 2.0)
    assert read(tmp_path / "x.weights.json") == {2.0}


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
    assert read(path) == {1.0}


def test_a_name_in_h5_is_changed_as_in_keras(tmp_path):
    with pytest.warns(UserWarning, match="renamed to"):
        save(tmp_path / "x.weights.h5")
    assert read(tmp_path / "x.weights.json") == {1.0}


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
