import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.export import Signature, write_saved_model
from keras_bert_layers.export import saved_model as graph


@pytest.fixture
def model():
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])


@pytest.fixture
def signature(model):
    return Signature("double", lambda x: {"y": 2 * model(x)}, {"x": ((None, 3), "float32")})


def test_signature_answers(model, signature, tmp_path):
    path = write_saved_model(tmp_path / "deep" / "model", [signature])
    served = tf.saved_model.load(str(path)).signatures
    x = np.ones((4, 3), "float32")
    np.testing.assert_allclose(served["double"](x=tf.constant(x))["y"], 2 * model(x), atol=1e-6)
    assert "serving_default" in served


def test_every_variable_is_written_once(signature, tmp_path):
    path = write_saved_model(tmp_path / "model", [signature])
    shapes = tf.train.load_checkpoint(str(path / "variables" / "variables")).get_variable_to_shape_map()
    assert sorted(map(len, shapes.values())) == [0, 1, 2]  # the checkpoint's own counter, bias and kernel


def test_logs_no_temporary_folder(signature, tmp_path, caplog):
    logger = tf.get_logger()
    with caplog.at_level("INFO", logger=logger.name):  # as in a notebook
        logger.info("heard")
        write_saved_model(tmp_path / "model", [signature])
        assert logger.level == logging.INFO
    assert [record.getMessage() for record in caplog.records if record.name == logger.name] == ["heard"]


def test_replaces_a_saved_model(signature, tmp_path):
    for _ in range(2):
        write_saved_model(tmp_path / "model", [signature])
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_refuses_to_replace_anything_else(signature, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    for name in ("thesis", "thesis/chapter.txt"):
        with pytest.raises(FileExistsError, match="`path` must be new, an empty folder, or a SavedModel to replace"):
            write_saved_model(tmp_path / name, [signature])
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


def test_refuses_other_machines(signature, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="`path` must be a local folder. Received: path='gs://bucket/model'"):
        write_saved_model("gs://bucket/model", [signature])
    assert list(tmp_path.iterdir()) == []


def test_a_failed_export_leaves_nothing(tmp_path):
    def fail(x):
        raise ValueError("this signature cannot be traced")

    with pytest.raises(ValueError, match="cannot be traced"):
        write_saved_model(tmp_path / "model", [Signature("bad", fail, {"x": ((None, 3), "float32")})])
    assert list(tmp_path.iterdir()) == []


def test_a_failed_export_keeps_the_model_that_was_there(signature, tmp_path, monkeypatch):
    path = write_saved_model(tmp_path / "model", [signature])
    before = (path / "saved_model.pb").read_bytes()

    def full_disk(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_saved_model(tmp_path / "model", [signature])
    assert (path / "saved_model.pb").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_other_backends(signature, tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(RuntimeError, match="on the TensorFlow backend only. Received: KERAS_BACKEND='jax'"):
        write_saved_model(tmp_path / "model", [signature])


@pytest.fixture
def another_is_quicker(monkeypatch):
    """A function that lets another process make a version while the next export is under way."""

    def another(folder):
        def save(unfinished, signatures):
            monkeypatch.setattr(graph, "save_functions", as_it_is)
            folder.mkdir(parents=True)
            (folder / "saved_model.pb").write_bytes(b"another")
            as_it_is(unfinished, signatures)

        as_it_is = graph.save_functions
        monkeypatch.setattr(graph, "save_functions", save)

    return another


def test_the_next_version_is_taken_once(signature, tmp_path, another_is_quicker):
    another_is_quicker(tmp_path / "model" / "1")
    assert write_saved_model(tmp_path / "model", [signature], version="next") == tmp_path / "model" / "2"
    assert (tmp_path / "model" / "1" / "saved_model.pb").read_bytes() == b"another"
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["1", "2"]


def test_a_version_that_was_taken_meanwhile(signature, tmp_path, another_is_quicker):
    another_is_quicker(tmp_path / "model" / "7")
    with pytest.raises(FileExistsError, match="7"):
        write_saved_model(tmp_path / "model", [signature], version=7)
    assert (tmp_path / "model" / "7" / "saved_model.pb").read_bytes() == b"another"
