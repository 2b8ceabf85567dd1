"""`export_saved_model`: signatures, versions, replacing, and no files left after a failure."""

import collections
import dataclasses
import logging
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

import keras_bert_layers as kbl
from keras_bert_layers.export import Signature, write_saved_model
from keras_bert_layers.export import saved_model as graph
from keras_bert_layers.preprocessing import SpanPreprocessor


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


ADDS = Signature("serve", lambda x: {"y": x + 1}, {"x": ((None,), "float32")})


def write(path, version):
    return write_saved_model(path, [ADDS], version=version)


def test_each_version_has_a_folder_of_its_own(tmp_path):
    model = tmp_path / "models" / "adder"
    assert [write(model, version) for version in (3, "next", 1)] == [model / "3", model / "4", model / "1"]
    assert sorted(path.name for path in model.iterdir()) == ["1", "3", "4"]


def test_a_version_never_changes(tmp_path):
    write(tmp_path, 7)
    with pytest.raises(
        FileExistsError, match=r"Received: version=7 of '.*', which exists\. The next free version is 8\."
    ):
        write(tmp_path, 7)
    assert [path.name for path in tmp_path.iterdir()] == ["7"]


def test_servers_ignore_the_folder_until_it_is_complete(tmp_path, monkeypatch):
    def stopped(module, folder, **options):
        assert not any(path.name.isdecimal() for path in tmp_path.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(tf.saved_model, "save", stopped)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, "next")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", [0, -1])
def test_no_version(version, tmp_path):
    with pytest.raises(ValueError, match=f"`version` must be at least 1. Received: version={version}"):
        write(tmp_path, version)


@pytest.mark.parametrize("version", ["latest", 1.5, True])
def test_another_type(version, tmp_path):
    with pytest.raises(TypeError, match="`export`: `version` must be "):
        write(tmp_path, version)


def test_no_versions_inside_a_model(tmp_path):
    write_saved_model(tmp_path / "model", [ADDS])
    with pytest.raises(FileExistsError, match="`path` must be a folder of versions where `version` is given"):
        write(tmp_path / "model", 1)


OF_STRINGS = Signature("add", lambda x, t: {"y": x + 1, "u": t}, {"x": ((None,), "float32"), "t": ((None,), "string")})
REQUEST = {"x": np.array([1.5, 2], "float32"), "t": np.array(["é", ""], object)}


def test_requests_are_where_a_server_looks_for_them(tmp_path):
    prediction_log_pb2 = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    path = write_saved_model(tmp_path / "model", [OF_STRINGS], warm_up={"add": [REQUEST, REQUEST]})
    records = list(tf.data.TFRecordDataset(str(path / "assets.extra" / "tf_serving_warmup_requests")))
    assert len(records) == 2
    request = prediction_log_pb2.PredictionLog.FromString(records[0].numpy()).predict_log.request
    assert request.model_spec.signature_name == "add"
    inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
    np.testing.assert_array_equal(inputs["x"], REQUEST["x"])
    assert inputs["t"].tolist() == ["é".encode(), b""]


def test_without_requests_there_is_no_file(tmp_path):
    assert not (write_saved_model(tmp_path / "model", [OF_STRINGS]) / "assets.extra").exists()


def test_without_the_messages(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_serving", None)
    monkeypatch.setitem(sys.modules, "tensorflow_serving.apis.prediction_log_pb2", None)
    with pytest.raises(ModuleNotFoundError, match="`pip install tensorflow-serving-api`, or give `warm_up=False`"):
        write_saved_model(tmp_path / "model", [OF_STRINGS], warm_up={"add": [REQUEST]})
    assert list(tmp_path.iterdir()) == []


MEGABYTE = 1_000_000
# Operations of which every signature that computes something has some.
OF_THE_MODEL, OF_THE_TOKENIZER = "FusedBatchNormV3", "FastWordpieceTokenizeWithOffsets"


def called(node):
    """The names that a node may call a function by."""
    values = node.attr.values()
    return {
        node.op,
        *(value.func.name for value in values),
        *(func.name for value in values for func in value.list.func),
    }


def operations(folder):
    """How often each operation occurs in the function library, and in what the signature `token_ids` calls."""
    meta_graph = SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs[0]
    functions = {func.signature.name: func.node_def for func in meta_graph.graph_def.library.function}
    output = next(iter(meta_graph.signature_def["token_ids"].outputs.values())).name
    found, new = set(), [node for node in meta_graph.graph_def.node if node.name == output.split(":")[0]]
    while new:
        names = set().union(*map(called, new)) & functions.keys() - found
        found |= names
        new = [node for name in names for node in functions[name]]

    def count(names):
        return collections.Counter(node.op for name in names for node in functions[name])

    return count(functions), count(found)


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


TASKS = {
    "vectors": kbl.BertSentenceEncoder,
    "search": kbl.BertDualEncoder,
    "answers": kbl.BertQuestionAnswerer,
    "choices": kbl.BertMultipleChoice,
}


def test_the_graph_is_the_same_where_functions_run_eagerly(backbone, eagerly, tmp_path):
    task = kbl.BertClassifier(backbone, 2)
    with eagerly():
        task.export(tmp_path / "eagerly", warm_up=False)
        assert tf.config.functions_run_eagerly(), "an export leaves it as it was"
    task.export(tmp_path / "in_graphs", warm_up=False)
    one, other = (operations(tmp_path / name) for name in ("eagerly", "in_graphs"))
    assert one == other, "each call of a block would be a copy of it"


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_the_model_and_the_tokenizer_are_written_once(name, backbone, preprocessor, tmp_path):
    if name == "answers":
        preprocessor = SpanPreprocessor(preprocessor.tokenizer, 9, stride=2)
    TASKS[name](backbone, preprocessor=preprocessor).export(tmp_path / "model")
    all_signatures, token_ids = operations(tmp_path / "model")
    assert all_signatures[OF_THE_MODEL] == token_ids[OF_THE_MODEL] > 0
    # For few texts, for many texts in four parts, and for a text that needs care; answers need offsets too.
    assert all_signatures[OF_THE_TOKENIZER] == (12 if name == "answers" else 6)


@pytest.mark.slow
def test_bert_base(minilm, tmp_path):
    """Its blocks and its tokens, in narrow layers: a second copy of the embedding alone would be too much."""
    config = kbl.presets.preset_config("bert_base_uncased")
    backbone = kbl.BertBackbone(dataclasses.replace(config, hidden_dim=96, intermediate_dim=384))
    assert 4 * 96 * config.vocabulary_size > 4 * MEGABYTE
    task = kbl.BertClassifier(backbone, 2, preprocessor=kbl.load_preprocessor(minilm))
    task.export(tmp_path / "model")
    assert size(tmp_path / "model") <= 4 * sum(int(np.prod(weight.shape)) for weight in task.weights) + 4 * MEGABYTE
    tf.saved_model.load(str(tmp_path / "model"))
